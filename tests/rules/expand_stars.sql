-- before and after, separated by -->; pairs end with ;
-- the relations: crm.customers (id, Name, city, since, score), crm.geo.places (id, city, label)

SELECT * FROM crm.geo.places
-->
SELECT `places`.`id` AS `id`, `places`.`city` AS `city`, `places`.`label` AS `label` FROM `crm.geo.places` AS `places`;

SELECT p.*, Name FROM crm.customers AS c, crm.geo.places AS p
-->
SELECT `p`.`id` AS `id`, `p`.`city` AS `city`, `p`.`label` AS `label`, `c`.`Name` AS `Name` FROM `crm.customers` AS `c`, `crm.geo.places` AS `p`;

SELECT * FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city, id, label)
-->
SELECT `a`.`city` AS `city`, `a`.`id` AS `id`, `a`.`label` AS `label` FROM `crm.geo.places` AS `a`, `crm.geo.places` AS `b` WHERE (`a`.`city` = `b`.`city`) AND (`a`.`id` = `b`.`id`) AND (`a`.`label` = `b`.`label`);

SELECT b.* FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city)
-->
SELECT `b`.`city` AS `city`, `b`.`id` AS `id`, `b`.`label` AS `label` FROM `crm.geo.places` AS `a`, `crm.geo.places` AS `b` WHERE (`a`.`city` = `b`.`city`);
