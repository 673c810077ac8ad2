/** Rows of the attack corpus that have no test, and why. A row that gets one leaves this table. */
export const notApplicable: Readonly<Record<string, string>> = {
  CU13: 'No method asks for input in several rounds, so there is no requestState to tamper with; any is passed over.',
  CU14: 'As CU13: a requestState that nobody gave out is passed over, like any other param that means nothing.',
  CU16: 'There is no cache of analyses yet, and nothing else that a handle would name.',
  HT22: 'Streams of changes have tests of their own (section 3.14).',
  HT23: 'Streams of changes have tests of their own (section 3.14).',
  HT27: 'Only HTTP/1.1 is served; that the preface of HTTP/2 is refused is tested with HT17.',
  HT33: 'There are no cookies and no explorer yet; that no cookie is set is tested with HT32.',
}
