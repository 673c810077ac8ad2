// Shared code of the servers in this folder: it makes resources of a folder of files.
import { readdirSync, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const [, , root = '.'] = process.argv

export const prefix = 'bench://docs/'
export const template = `${prefix}{+name}`
export const names = readdirSync(root).sort()

/** The listing, made once: the servers answer it from memory. */
export const resources = names.map((name) => ({ uri: prefix + name, name, mimeType: 'text/plain' }))

export const nameOf = (uri) => uri.slice(prefix.length)

/** Reads a file. Names that lead out of the folder are refused. */
export const textOf = (name) => {
  if (/\\|^\/|(^|\/)\.+(\/|$)/.test(name)) throw new Error('There is no such resource.')
  return readFile(join(root, name), 'utf8')
}

export const contentsOf = async (uri) => ({
  contents: [{ uri, mimeType: 'text/plain', text: await textOf(nameOf(uri)) }],
})

/** The first 100 names that begin as typed. */
export const complete = (typed) => {
  const found = []
  for (const name of names) {
    if (name.startsWith(typed)) found.push(name)
    if (found.length === 100) break
  }
  return found
}

/** Calls back with the URI of each file that is written from now on. */
export const follow = (tell) => {
  watch(root, (_, name) => {
    if (name !== null) tell(prefix + name)
  })
}

/** Prints the URL of the server to stderr. */
export const say = (port, path = '/mcp') => process.stderr.write(`http://127.0.0.1:${port}${path}\n`)

/** Finds a free port, for frameworks that do not report the port on which they listen. */
export const freePort = async () => {
  const { createServer } = await import('node:net')
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
