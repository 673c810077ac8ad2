import { closedAbove } from './tree.ts'

/** Nobody who has not seen it can name a file like that. Short, since sources take longer over longer names. */
let unguessable: string | undefined

function makeUnguessable(): string {
  // Through the global object: loading node:crypto takes a start several milliseconds.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return random.toString(36).padStart(7, 'z').slice(-5)
}

/**
 * A path that is not there, to ask a source for in the place of one that may not be seen: its answer then costs what
 * "nothing is there" costs, whatever the other path holds, and nothing of that is touched.
 *
 * The first directory that is closed (nothing below it may be seen) gets a name that nobody can guess, else the last name
 * does: a path of a directory that may be looked into is missed in that directory. The same path has the same decoy, so
 * that whatever a source remembers, it remembers of both. The ending stays, since sources judge names by it.
 *
 * @param isClosed Whether nothing below a directory, which ends in `/`, may be seen.
 */
export function decoyOf(path: string, isClosed: (directory: string) => boolean): string {
  const segments = path.split('/')
  const last = path.endsWith('/') ? segments.length - 2 : segments.length - 1
  const closed = closedAbove(path.replace(/\/$/, ''), isClosed)
  const at = closed === undefined ? last : closed.split('/').length - 2
  const name = segments[at] ?? ''
  const ending = at === last && !path.endsWith('/') ? (/(?<=.)\.\w{1,10}$/.exec(name)?.[0] ?? '') : ''
  unguessable ??= makeUnguessable()
  segments[at] = `${unguessable}${hashOf(name)}`.padEnd(name.length - ending.length, '0') + ending
  return segments.join('/')
}

/** FNV-1a, in three characters. It keeps names apart, and nothing secret: what cannot be guessed is the rest of the name. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (((hash >>> 15) ^ hash) & 0x7fff).toString(32).padStart(3, '0')
}
