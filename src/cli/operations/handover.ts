import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stateFolder } from '../../config/state-folder.ts'

/** A file that sends a browser to an address which nobody else may learn. */
export interface Handover {
  /** The `file:` URL of the file. It tells nothing of the address. */
  readonly url: string
  /** Removes the file. */
  remove(): Promise<void>
}

/**
 * Hands a secret address to a browser. Every user of a machine can read the arguments of every process, so the browser is given a file
 * that only this user can read (mode 0600), and finds the address in it.
 *
 * @param address Characters that mean something in HTML are escaped.
 * @throws the error of the system where the state folder cannot be written.
 */
export async function createHandover(
  address: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Handover> {
  const folder = join(stateFolder(env), 'ui')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `open-${randomBytes(8).toString('hex')}.html`)
  await writeFile(file, pageFor(address), { flag: 'wx', mode: 0o600 })
  return { url: pathToFileURL(file).href, remove: () => rm(file, { force: true }) }
}

/** A page that leads to an address at once, and has a link for a browser that does not follow. */
function pageFor(address: string): string {
  const escaped = address.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${escaped}">
<title>hikidashi</title>
<p><a href="${escaped}">Open the explorer of hikidashi</a></p>
</html>
`
}
