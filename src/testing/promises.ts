/**
 * Every promise of the Provider interface that the suite checks: a stable name, and the sentence that documentation,
 * tests and reports print for it.
 */
export const promises = {
  'list-ends': 'A listing comes to its end without an error.',
  'list-paths': 'Every listed path is a valid path. The empty one is the mount itself.',
  'list-files': 'A listing holds no directories: no path ends in `/`.',
  'list-order': 'Entries come in path order, which is the order of their UTF-8 bytes.',
  'list-unique': 'No path is listed twice.',
  'list-stable': 'Two listings of an unchanged source agree.',
  'list-resume': 'A listing resumed after any listed path yields exactly the rest.',
  'list-seek': 'A listing resumed after a path that does not exist yields exactly what sorts after it.',
  'list-prefix': 'A prefix yields exactly the entries below it, also together with `after`.',
  'list-nothing': 'A prefix below which there is nothing yields nothing, and is no error.',
  'list-stop': 'A listing can be left at any entry, and then holds nothing open.',
  metadata: 'Metadata is valid: size, modified, version, priority, audience, MIME type, icons, titles.',
  'stat-same': 'What `stat` says of a listed path is what the listing says.',
  'stat-missing': '`stat` throws `not-found` where nothing is.',
  'read-content': 'Every listed path can be read, and answers at least one content.',
  'read-version': 'The version of what is read is the one that is listed.',
  'read-size':
    'The size of what is read is the one that it states, and the one that is listed, unless it says that it was decoded.',
  'read-text': 'Text is well-formed Unicode.',
  'read-range': 'A range is honoured, exactly and said so, or ignored, but not now this and now that.',
  'read-missing': '`read` throws `not-found` where nothing is, and never answers an empty list.',
  spelling: 'A path is found by its own spelling only: not in another case or Unicode normalization.',
  'abort-before': 'A call whose signal has been aborted rejects, or lists nothing, at once.',
  'abort-during': 'A listing ends soon after its signal is aborted.',
  errors: 'Only ResourceError is thrown.',
  settles: 'Every call settles in time.',
  templates: 'Every template compiles (RFC 6570), and has a name and valid metadata.',
  completion: 'A completion has at most 100 values, counts that fit them, and proposes again what it has proposed.',
  'watch-ends': 'A watch ends soon after its signal is aborted, and yields valid paths.',
  expected: 'It lists and reads what was expected of it.',
} as const

/** The name of a promise. */
export type PromiseId = keyof typeof promises

/** All promises, in the order in which they are checked and printed. */
export const promiseIds = Object.keys(promises) as readonly PromiseId[]
