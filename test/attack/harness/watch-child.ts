/**
 * Watches a folder while a resource of the system runs out. `watch-child.ts SCENARIO ROOT` prints one line of JSON: the reported
 * paths among the changed ones, and the log.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import { createFiles } from '../../../src/providers/files/index.ts'
import { countNotified, startWatching } from '../../support/watching.ts'

const [scenario, root = ''] = process.argv.slice(2)
const alive = setInterval(() => {}, 1000)
const logged: string[] = []
const provider = await createFiles(
  {
    root,
    reconcile: 500,
    log: (level, message, fields) => logged.push(`${level}: ${message} ${JSON.stringify(fields)}`),
  },
  {},
)
const watch = await startWatching(provider)
const notified = countNotified()
const paths = fs.readdirSync(root).map((name) => `${name}/x`)
const change = (text: string) => {
  for (const name of paths) fs.writeFileSync(path.join(root, name), text)
}

if (scenario === 'watches') {
  // The system allows fewer watches than there are directories.
  change('changed')
  await watch.until(...paths)
} else {
  // No file descriptor is free for a while.
  await watch.quiet()
  const taken: number[] = []
  const files = paths.map((name) => fs.openSync(path.join(root, name), 'w'))
  try {
    for (;;) taken.push(fs.openSync('/dev/null', 'r'))
  } catch {}
  for (const fd of files) fs.writeSync(fd, 'changed')
  await new Promise((resolve) => setTimeout(resolve, 400))
  for (const fd of [...taken, ...files]) fs.closeSync(fd)
  await watch.until(...paths)
}
const missing = watch.missing(paths)
await watch.stop()
await provider.close?.()
process.stdout.write(`${JSON.stringify({ missing, notified, logged })}\n`)
clearInterval(alive)
