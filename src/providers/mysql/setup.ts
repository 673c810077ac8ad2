/** Statements that make an account that only reads, as `hikidashi init --sql mysql` prints them. */
export const setupSql = `-- An account that reads and does nothing else. Set its password yourself, so that it stands in no history:
--   ALTER USER 'hikidashi_reader'@'%' IDENTIFIED BY '…';
CREATE USER 'hikidashi_reader'@'%' ACCOUNT LOCK;
-- For each database that is served:
GRANT SELECT, SHOW VIEW ON \`app\`.* TO 'hikidashi_reader'@'%';
-- Once it has a password:
--   ALTER USER 'hikidashi_reader'@'%' ACCOUNT UNLOCK;
`
