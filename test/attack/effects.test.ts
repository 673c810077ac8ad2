import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { requires } from '../support/require.ts'
import { identity } from './corpus/hostile-identity.ts'
import { folder, traversal } from './corpus/hostile-uris.ts'
import { openStdio } from './harness/stdio.ts'
import { startConfigured } from './harness/target.ts'
import { createWorld } from './harness/world.ts'

// The oracles of the arena look at what a process holds, now and then. Here the system itself tells everything it does.

const describeTraced = requires('strace', canTrace(), 'strace is not there, or may not trace')

function canTrace(): boolean {
  try {
    execFileSync('strace', ['-f', '-o', '/dev/null', 'true'])
    return true
  } catch {
    return false
  }
}

const calls =
  'execve,execveat,connect,bind,openat,open,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat2,symlink,symlinkat,link,linkat'

describeTraced('a server that is attacked', () => {
  test('only reads files: it starts no program, opens no connection and writes no file (PT01, UR01, SS01, O4)', async () => {
    const world = createWorld()
    const log = join(dirname(world.root), 'trace')
    const config = { mounts: { [world.address]: { provider: 'files', root: world.root } } }
    const target = await startConfigured(world, 'stdio', config, [
      // A start writes compiled code to the cache folder of the user, which is no effect of a request.
      ...['env', 'NODE_DISABLE_COMPILE_CACHE=1'],
      'strace',
      '-f',
      '-qq',
      '-e',
      `trace=${calls}`,
      '-o',
      log,
    ])
    const wire = await openStdio(target, world)
    const uris = [...traversal, ...folder, ...identity].map(({ uri }) => uri(world.address))
    const outside = ['http://127.0.0.1:9/x', 'git://127.0.0.1/x', 'file:///proc/self/environ', 'file:///bin/sh']
    for (const uri of [...uris.filter((_, i) => i % 3 === 0), ...outside]) await wire.call('resources/read', { uri })
    for (const method of ['resources/list', 'resources/templates/list', 'server/discover', 'tools/call'])
      await wire.call(method, { name: '`id`', arguments: { command: 'id' } })
    await target.stop()
    const lines = readFileSync(log, 'utf8').split('\n')
    const did = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).map((line) => line.slice(0, 200))
    expect(lines.length).toBeGreaterThan(100)
    expect(did(/ execve/)).toHaveLength(1)
    expect(did(/ (?:connect|bind)\(/)).toEqual([])
    expect(did(/ (?:creat|mkdir|unlink|rename|symlink|link)(?:at2?)?\(/)).toEqual([])
    expect(
      did(/ open(?:at)?\(.*(?:O_WRONLY|O_RDWR|O_CREAT)/).filter((line) => !/"\/dev\/|"\/proc\/self\/fd/.test(line)),
    ).toEqual([])
    expect(world.canaries.leaks).toEqual([])
    world.dispose()
  }, 240_000)
})
