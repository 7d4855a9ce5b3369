-- before and after, separated by -->; pairs end with ;

SELECT 1 AS one FROM crm.customers AS c JOIN crm.geo.places AS p USING (City, id)
-->
SELECT 1 AS `one` FROM `crm.customers` AS `c`, `crm.geo.places` AS `p` WHERE (`c`.`city` = `p`.`city`) AND (`c`.`id` = `p`.`id`);

SELECT 1 AS one FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (id) JOIN crm.geo.places AS c USING (id)
-->
SELECT 1 AS `one` FROM `crm.geo.places` AS `a`, `crm.geo.places` AS `b`, `crm.geo.places` AS `c` WHERE (`a`.`id` = `b`.`id`) AND (`a`.`id` = `c`.`id`);

SELECT 1 AS one FROM crm.geo.places AS a JOIN crm.geo.places AS b ON a.id < b.id
-->
SELECT 1 AS `one` FROM `crm.geo.places` AS `a`, `crm.geo.places` AS `b` WHERE (`a`.`id` < `b`.`id`);
