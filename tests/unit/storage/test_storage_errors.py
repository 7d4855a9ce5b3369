from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError
from s3_server import S3Server

from headwater.errors import HeadwaterError, WarehouseRefused
from headwater.storage.data_file import write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.few_rows import read_few
from headwater.storage.notes import read_text, write_text
from headwater.storage.object_store import reach, store_at
from headwater.storage.storage_errors import storage_error, stored
from headwater.warehouse.format import check_format, refuse_occupied
from headwater.warehouse.lease import read_lease
from headwater.warehouse.mailbox import Releases, requested_refreshes
from headwater.warehouse.project_name import project_of

LOG = "/w/changelog"


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "HW-434", "free some space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "HW-434", "free some space"),
        (DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"), "HW-434", LOG),
        (CommitFailedError("Unable to write: Read-only file system (os error 30)"), "HW-435", LOG),
        (PermissionError(errno.EACCES, "Permission denied", f"{LOG}/part-1.parquet"), "HW-435", "part-1.parquet"),
        (PermissionError(errno.EACCES, "Permission denied", "/p/headwater.toml"), "HW-435", "/p/headwater.toml"),
        (FileNotFoundError(f"{LOG}/part-2.parquet"), "HW-433", "part-2.parquet"),
        (RuntimeError(f"[FAILED_READ_FILE.FILE_NOT_EXIST] … file:{LOG}/part-3.parquet."), "HW-433", "part-3.parquet"),
        (RuntimeError(f"[FAILED_READ_FILE.NO_HINT] … file://{LOG}/part-4.parquet."), "HW-432", "part-4.parquet"),
        (pa.ArrowInvalid("Parquet magic bytes not found in footer."), "HW-432", LOG),
        (OSError(errno.EIO, "Input/output error"), "HW-436", LOG),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", LOG), "HW-436", LOG),
    ],
)
def test_an_error_names_the_file_and_the_way_out(error: Exception, code: str, says: str) -> None:
    told = storage_error(error, LOG)
    assert told is not None
    assert (told.code, says in str(told), bool(told.hint)) == (code, True, True), str(told)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        TimeoutError("timed out"),
        pa.ArrowInvalid("Integer value 300 not in range"),
        ValueError("something else"),
    ],
)
def test_what_is_not_about_files_stays_what_it_is(error: Exception) -> None:
    assert storage_error(error, LOG) is None
    with pytest.raises(type(error)), stored(LOG):
        raise error
    refused = HeadwaterError("no", code="HW-001")
    with pytest.raises(HeadwaterError) as same, stored(LOG):
        raise refused
    assert same.value is refused


def test_a_full_disk_is_told_by_whoever_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = FencedTable.create(str(tmp_path), pa.schema([("_tick", pa.int64())]), numbers={}, mark="{}")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    monkeypatch.setattr("headwater.storage.fenced_table.DeltaTable.create_write_transaction", full)
    for write in (
        lambda: write_rows(str(tmp_path), pa.table({"_tick": [1]})),
        lambda: table.register([], numbers={}),
    ):
        with pytest.raises(WarehouseRefused) as refused:
            write()
        assert refused.value.code == "HW-434"
        assert str(tmp_path) in refused.value.summary
        assert "MB are free there" in refused.value.detail


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(WarehouseRefused) as refused:
        write_text(str(tmp_path / "taken"), "lease.json", "{}")
    assert str(tmp_path / "taken") in str(refused.value)
    assert read_text(str(tmp_path / "taken"), "lease.json") is None


@pytest.mark.parametrize("text", ["", "garbage{", "[]", "{}"])
def test_a_note_that_says_nothing_is_named(tmp_path: Path, text: str) -> None:
    path = str(tmp_path)
    for file, read in (
        ("refreshes/v.json", lambda: requested_refreshes(path)),
        ("released/x.json", lambda: Releases(path).look()),
        ("lease.json", lambda: read_lease(path)),
        ("project.json", lambda: project_of(path)),
        ("format.json", lambda: check_format(path)),
    ):
        write_text(path, file, text)
        with pytest.raises(WarehouseRefused) as refused:
            read()
        assert (refused.value.code, f'"{path}/{file}"' in str(refused.value)) == ("HW-432", True)
        assert refused.value.hint


def test_a_warehouse_is_made_only_in_a_folder_of_its_own(tmp_path: Path) -> None:
    refuse_occupied(str(tmp_path / "new"))
    (tmp_path / "changelog").mkdir()
    (tmp_path / "lost+found").mkdir()
    refuse_occupied(str(tmp_path))
    (tmp_path / "views").mkdir()
    with pytest.raises(WarehouseRefused, match="views") as refused:
        refuse_occupied(str(tmp_path))
    assert refused.value.code == "HW-438"
    (tmp_path / "format.json").write_text(json.dumps({"format": 3}))
    refuse_occupied(str(tmp_path))


def refusal(work: Callable[[], object]) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as refused:
        work()
    return refused.value


def test_what_an_object_store_says_is_told_by_name(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way that we use a store has exceptions of its own: ours, Delta's and Arrow's."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "kanarienvogel7")
    address = s3.address()
    reach(address, s3.options)
    table = FencedTable.create(address, pa.schema([("_tick", pa.int64())]), numbers={}, mark="{}")
    assert table.append(pa.table({"_tick": [1]}), numbers={})
    [file] = table.files()
    elsewhere = "s3://headwater-no-bucket/warehouse"
    reach(elsewhere, s3.options)
    silent = "s3://headwater-silent/warehouse"
    reach(silent, {**s3.options, "endpoint": "http://127.0.0.1:1"})
    encrypted = "s3://headwater-encrypted/warehouse"
    reach(encrypted, {key: value for key, value in s3.options.items() if key != "allow_http"})

    def each(root: str, most: int = 9) -> list[HeadwaterError]:
        ways = (
            lambda: FencedTable.open(root),
            lambda: read_text(root, "lease.json"),
            lambda: write_text(root, "lease.json", "{}"),
            lambda: FencedTable.create(f"{root}/new", pa.schema([("_tick", pa.int64())]), numbers={}, mark="{}"),
            lambda: read_few([f"{root}/part-1.parquet"], pa.schema([("_tick", pa.int64())]), None, 10),
            lambda: write_rows(root, pa.table({"_tick": [1]})),
        )
        return [refusal(way) for way in ways[:most]]

    told = {elsewhere: each(elsewhere), encrypted: each(encrypted), silent: each(silent, 2)}  # it is asked for seconds
    with s3.failing("refuse"):
        told[address] = each(address)
    codes = {root: {error.code for error in errors} for root, errors in told.items()}
    assert codes == {elsewhere: {"HW-440"}, silent: {"HW-443"}, encrypted: {"HW-442"}, address: {"HW-441"}}
    for root, errors in told.items():
        assert all(root in error.summary and error.hint and "\x1b" not in str(error) for error in errors)
        assert not [error for error in errors if "kanarienvogel7" in str(error)]
    missing = refusal(lambda: read_few([f"{address}/part-1.parquet"], table.schema(), None, 10))
    assert (missing.code, f'"{address}/part-1.parquet" is missing' in str(missing)) == ("HW-433", True)
    root, _, name = file.rpartition("/")
    store_at(root).put(name, b"PAR1 and nothing else")
    broken = refusal(lambda: read_few([file], table.schema(), None, 10))
    assert (broken.code, f'"{file}" is damaged' in str(broken)) == ("HW-432", True)
    store_at(address).put("_delta_log/00000000000000000001.json", b"garbage{")
    broken = refusal(lambda: FencedTable.open(address))
    assert (broken.code, "00000000000000000001.json" in broken.summary) == ("HW-432", True)
    store_at(address).put("lease.json", b"")
    assert refusal(lambda: read_lease(address)).summary == f'"{address}/lease.json" is damaged'


def test_a_full_disk_is_never_that_of_a_store() -> None:
    told = storage_error(OSError(errno.ENOSPC, "No space left on device"), "s3://bucket/warehouse/part-1.parquet")
    assert told is not None
    assert (told.code, tempfile.gettempdir() in told.summary) == ("HW-434", True)


def test_the_query_of_a_url_is_left_out() -> None:
    signed = "Generic MicrosoftAzure error: Error performing GET https://x.example/c/a?sv=1&sig=kanarienvogel7 in 3ms"
    told = storage_error(RuntimeError(signed), "az://c/warehouse")
    assert told is not None
    assert (told.code, "kanarienvogel7" in str(told)) == ("HW-443", False)
