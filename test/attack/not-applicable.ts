/** Rows of the attack corpus that have no test, and why. A row that gets one leaves this table. */
export const notApplicable: Readonly<Record<string, string>> = {
  CU13: 'No method asks for input in several rounds, so there is no requestState to tamper with; any is passed over.',
  CU14: 'As CU13: a requestState that nobody gave out is passed over, like any other param that means nothing.',
  CU16: 'There is no cache of analyses yet, and nothing else that a handle would name.',
  CP09: 'There is no cache that others could write to: nothing is kept outside the process.',
  CP12: 'There is no cache of analyses yet; a document that was made of a file is kept under what tells its content apart (BM rows).',
  CP13: 'There is no folder for caches: nothing is written to disk but the audit log, which has tests of its own.',
  HT27: 'Only HTTP/1.1 is served; that the preface of HTTP/2 is refused is tested with HT17.',
  HT33: 'There are no cookies and no explorer yet; that no cookie is set is tested with HT32.',
  SB19: 'There is one process: nothing carries changes from one replica to another yet.',
}

/** Sections that are about something that does not exist here yet, and why. Rows of them that have a test are tested. */
export const notApplicableSections: Readonly<Record<string, string>> = {
  PG: 'There is no PostgreSQL source yet, and no client ever sends SQL; what reads from one brings these rows along.',
  S3: 'There is no source for object storage yet; a URI of one is as absent as any other that is not mounted (SS01).',
  DR: 'There is no source for Drive, no search and no index yet; documents in a folder are tested (DR07, DR08).',
  SS: 'There is no source that fetches: what a client, a URI or a content names is not asked for (SS01 to SS04). Of what goes out, the client and the keys of issuers are tested.',
  UI: 'There is no explorer, and no export as a table: no page is served. The command line is what shows names to people (UI16, UI21, UI26), the protocol what passes them on (UI17, UI27, UI28).',
}
