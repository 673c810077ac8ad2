import { namesCredentials } from './credential-files.ts'
import { foldName } from './fold.ts'

/** Hashes of passwords wherever they were copied to, and the environments and command lines of processes. */
const others = /(?:^|\/)g?shadow-?$|^proc\/(?:\d+|self)\/(?:environ|cmdline)$/

/** The longest path that is looked at, in characters; of a longer one, the end. */
const maxPath = 4096

/**
 * Whether a file is withheld as a whole for its name, or for that of a folder that it is in: it commonly holds
 * credentials (`secrets/credential-files.ts`), and a detector could miss one of them.
 */
export function isVault(path: string): boolean {
  const folded = foldName(path.length > maxPath ? path.slice(-maxPath) : path).toLowerCase()
  if (others.test(folded) || namesCredentials(folded)) return true
  for (let slash = folded.indexOf('/'); slash !== -1; slash = folded.indexOf('/', slash + 1))
    if (namesCredentials(folded.slice(0, slash + 1))) return true
  return false
}
