-- before and after, separated by -->; pairs end with ;
-- the relations: crm.customers (id, Name, city, since, score), crm.geo.places (id, city, label)

SELECT * FROM crm.geo.places
-->
SELECT `places`.`id`, `places`.`city`, `places`.`label` FROM crm.geo.places;

SELECT p.*, Name FROM crm.customers AS c, crm.geo.places AS p
-->
SELECT `p`.`id`, `p`.`city`, `p`.`label`, Name FROM crm.customers AS c CROSS JOIN crm.geo.places AS p;

SELECT * FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city, id, label)
-->
SELECT `a`.`city`, `a`.`id`, `a`.`label` FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city, id, label);

SELECT b.* FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city)
-->
SELECT `b`.`city`, `b`.`id`, `b`.`label` FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city);
