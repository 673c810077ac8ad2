/**
 * Records the modules that a process loads, one URL a line, in the file that `HIKIDASHI_LOADED` names: `node --import THIS ...`.
 * The line `answered` marks the first write to the standard output.
 */
import { appendFileSync } from 'node:fs'
import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'

const record = (line) => appendFileSync(process.env.HIKIDASHI_LOADED, `${line}\n`)

/** A hook of Node's module loader, which runs in its own thread. */
export async function load(url, context, next) {
  record(url)
  return next(url, context)
}

if (isMainThread) {
  register(import.meta.url)
  const { write } = process.stdout
  process.stdout.write = (...args) => {
    record('answered')
    process.stdout.write = write
    return write.apply(process.stdout, args)
  }
}
