"""The console: the warehouse in a browser, each page as of one tick. It reads through `api` and changes nothing."""
