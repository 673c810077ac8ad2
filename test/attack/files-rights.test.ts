import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { expect, test } from 'vitest'
import { bundled } from '../support/bundled.ts'
import { useFiles } from '../support/files.ts'

const canary = 'CANARY-51c3aa'

const { folder } = useFiles(canary)

test('a file without read permission is neither listed nor distinguishable from an absent one (PT41)', async () => {
  folder.write({
    'open.txt': 'open',
    'closed.txt': canary,
    'closed/f': canary,
    'unlisted/f': canary,
    'unsearched/f': canary,
  })
  fs.chmodSync(folder.root, 0o755)
  fs.chmodSync(path.dirname(folder.root), 0o755)
  fs.chmodSync(folder.at('closed.txt'), 0)
  fs.chmodSync(folder.at('closed'), 0)
  fs.chmodSync(folder.at('unlisted'), 0o311)
  fs.chmodSync(folder.at('unsearched'), 0o644)
  // Root may read everything: the provider runs as nobody then.
  const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  const script = `
    import { files } from ${JSON.stringify(bundled('providers/files/index'))}
    const context = { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }
    const provider = await files({ root: ${JSON.stringify(folder.root)} })
    const found = { uid: process.getuid(), paths: [], kinds: {} }
    for await (const { path } of provider.list({}, context)) found.paths.push(path)
    for (const path of ['open.txt', 'closed.txt', 'closed/f', 'closed/', 'unlisted/f', 'unsearched/f', 'none'])
      for (const call of [() => provider.read({ path, params: new Map() }, context), () => provider.stat(path, context)])
        (found.kinds[path] ??= []).push(await call().then(() => 'there', (error) => error.kind))
    process.stdout.write(JSON.stringify(found))`
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    ...nobody,
    cwd: '/',
  })
  for (const name of ['closed.txt', 'closed', 'unlisted', 'unsearched']) fs.chmodSync(folder.at(name), 0o755)
  const found = JSON.parse(run.stdout.toString() || `{"error":${JSON.stringify(run.stderr.toString())}}`) as Record<
    string,
    unknown
  >
  expect(found).toMatchObject({
    paths: ['open.txt'],
    kinds: {
      'open.txt': ['there', 'there'],
      'closed.txt': ['not-found', 'not-found'],
      'closed/f': ['not-found', 'not-found'],
      'closed/': ['not-found', 'not-found'],
      'unlisted/f': ['not-found', 'not-found'],
      'unsearched/f': ['not-found', 'not-found'],
      none: ['not-found', 'not-found'],
    },
  })
  expect(found.uid).not.toBe(0)
})

test('if the process has no descriptor left, a file gives an error of the source, not "not found", and is readable again later', async () => {
  folder.write({ 'a/b/f': 'x' })
  const script = `
    import * as fs from 'node:fs'
    import { files } from ${JSON.stringify(bundled('providers/files/index'))}
    const context = { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }
    const provider = await files({ root: ${JSON.stringify(folder.root)} })
    const read = () => provider.read({ path: 'a/b/f', params: new Map() }, context).then(() => 'there', (error) => error.kind)
    const list = async () => { try { for await (const _ of provider.list({}, context)) return 'there' } catch (error) { return error.kind } return 'nothing' }
    await read(); await list()
    const held = []
    try { for (;;) held.push(fs.openSync('/dev/null')) } catch {}
    const kinds = new Set()
    for (let free = 0; free < 8 && held.length > 0; free++) {
      kinds.add(await read()).add(await list())
      fs.closeSync(held.pop())
    }
    for (const fd of held) fs.closeSync(fd)
    process.stdout.write(JSON.stringify({ kinds: [...kinds].sort(), after: [await read(), await list()] }))`
  const run = spawnSync('sh', [
    '-c',
    'ulimit -n 120; exec "$0" "$@"',
    process.execPath,
    '--input-type=module',
    '-e',
    script,
  ])
  expect(run.stdout.toString(), run.stderr.toString()).toBe(
    JSON.stringify({ kinds: ['there', 'unavailable'], after: ['there', 'there'] }),
  )
})
