CREATE TABLE t(a, b);
CREATE INDEX t_a ON t(a);
INSERT INTO t VALUES (1, 2), (3, 4), (5, 6);
ANALYZE;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 VALUES ('t', NULL, '100 sz=0'), ('t', 't_a', '100 10');
ANALYZE sqlite_master;
SELECT * FROM t WHERE a = 3;
