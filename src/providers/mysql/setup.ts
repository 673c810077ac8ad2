/** Statements that make an account that only reads, as `hikidashi init --sql mysql` prints them. */
export const setupSql = `-- An account that reads and does nothing else. Set its password yourself, so that it stands in no history:
--   ALTER USER 'hikidashi_reader'@'%' IDENTIFIED BY '…';
CREATE USER 'hikidashi_reader'@'%' ACCOUNT LOCK;
-- For each database that is served:
GRANT SELECT, SHOW VIEW ON \`app\`.* TO 'hikidashi_reader'@'%';
-- Where functions and procedures are to be listed too. Nothing ever calls them:
--   GRANT EXECUTE ON \`app\`.* TO 'hikidashi_reader'@'%';
-- and to show what is in them, of MySQL:
--   GRANT SHOW_ROUTINE ON *.* TO 'hikidashi_reader'@'%';
-- of MariaDB from 11.3 on, and of one before that:
--   GRANT SHOW CREATE ROUTINE ON \`app\`.* TO 'hikidashi_reader'@'%';
--   GRANT SELECT ON mysql.proc TO 'hikidashi_reader'@'%';
-- Once it has a password:
--   ALTER USER 'hikidashi_reader'@'%' ACCOUNT UNLOCK;
`
