/** The subject of each section of the attack corpus, by the prefix of its rows. */
export const sections: Readonly<Record<string, string>> = {
  PT: 'paths and files',
  UR: 'URIs',
  GT: 'git',
  PG: 'PostgreSQL',
  S3: 'object storage',
  DR: 'Drive, documents and search',
  SS: 'requests that go out',
  TM: 'templates and completion',
  CU: 'cursors and handles',
  JR: 'JSON-RPC and framing',
  HT: 'HTTP, headers and streams',
  TK: 'tokens',
  CP: 'caches and principals',
  SB: 'subscriptions',
  SE: 'leaks of secrets',
  BM: 'parser bombs',
  UI: 'pages, terminals and exports',
  EV: 'events and webhooks',
}

/** Returns the rows that a text names, such as `PT01`. */
export function rowsIn(text: string): readonly string[] {
  return text.match(new RegExp(`\\b(?:${Object.keys(sections).join('|')})\\d{2}\\b`, 'g')) ?? []
}
