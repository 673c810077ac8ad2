/** Rows of the attack corpus that have no test, and why. A row that gets one leaves this table. */
export const notApplicable: Readonly<Record<string, string>> = {
  CU13: 'No method asks for input in several rounds, so there is no requestState to tamper with; any is passed over.',
  CU14: 'As CU13: a requestState that nobody gave out is passed over, like any other param that means nothing.',
  CU16: 'A kept analysis has no handle: its id is a name and no secret, and the rules of its mount say who may read it, as everywhere.',
  CP09: 'There is no Redis. A row of the store that was changed beneath it is told by its checksum, and not served (test/e2e/store-sqlite.test.ts).',
  CP12: 'An analysis is kept as it was given: none is computed here from a file; a document that was made of a file is kept under what tells its content apart (BM rows).',
  CP13: 'There is no folder for caches. The file of the store is for its user alone, no link, and bounded (test/e2e/store-sqlite.test.ts, test/unit/results.test.ts); the audit log has tests of its own.',
  HT27: 'Only HTTP/1.1 is served; that the preface of HTTP/2 is refused is tested with HT17.',
  PG14: 'Rows are served as JSON alone: there is no export as a table that a spreadsheet would open.',
  SB19: 'There is one process: nothing carries changes from one replica to another yet.',
  UI12: 'The page takes part in no OAuth flow: it has no callback. Whoever has an access token gives it by hand.',
  UI22: 'Nothing is exported as a table: contents are saved byte for byte, the basket as XML, Markdown or JSON. A spreadsheet would open none of these by itself, and a CSV file that a server has is saved as that server has it.',
  UI23: 'As UI22: no cells are written here that a spreadsheet could take for a formula.',
}

/** Sections that are about something that does not exist here yet, and why. Rows of them that have a test are tested. */
export const notApplicableSections: Readonly<Record<string, string>> = {}
