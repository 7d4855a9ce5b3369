-- before and after, separated by -->; pairs end with ;

SELECT ID, NAME AS n FROM crm.customers WHERE City = 1
-->
SELECT `customers`.`id` AS `ID`, `customers`.`Name` AS `n` FROM `crm.customers` AS `customers` WHERE (`customers`.`city` = 1);

SELECT crm.geo.places.label, upper(label) AS u FROM crm.geo.places
-->
SELECT `places`.`label` AS `label`, UPPER(`places`.`label`) AS `u` FROM `crm.geo.places` AS `places`;

SELECT city, b.city AS other FROM crm.geo.places AS a JOIN crm.geo.places AS b USING (city)
-->
SELECT `a`.`city` AS `city`, `b`.`city` AS `other` FROM `crm.geo.places` AS `a`, `crm.geo.places` AS `b` WHERE (`a`.`city` = `b`.`city`);

SELECT Name FROM crm.customers AS c JOIN crm.geo.places AS p ON C.city = P.city AND label = 'x'
-->
SELECT `c`.`Name` AS `Name` FROM `crm.customers` AS `c`, `crm.geo.places` AS `p` WHERE (`c`.`city` = `p`.`city`) AND (`p`.`label` = 'x');
