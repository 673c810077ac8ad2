import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../support/cli.ts'

const root = resolve(import.meta.dirname, '../..')

describe('npm start', { timeout: 60_000 }, () => {
  /** A clone whose build takes no time: what is built is that of this one, which other tests use meanwhile. */
  let clone = ''
  beforeAll(() => {
    clone = mkdtempSync(join(tmpdir(), 'hikidashi-start-'))
    for (const name of ['package.json', 'README.md']) copyFileSync(join(root, name), join(clone, name))
    mkdirSync(join(clone, 'scripts'))
    copyFileSync(join(root, 'scripts/start.mjs'), join(clone, 'scripts/start.mjs'))
    writeFileSync(join(clone, 'scripts/build.ts'), "process.stderr.write('built\\n')\n")
    for (const name of ['node_modules', 'dist']) symlinkSync(join(root, name), join(clone, name))
  })
  afterAll(() => rmSync(clone, { recursive: true }))

  /** Starts it at a free port, and waits until it serves. */
  async function start(command: string, args: readonly string[]) {
    const child = spawn(command, [...args], { cwd: clone, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    const url = await new Promise<URL>((resolve, reject) => {
      child.stderr.on('data', (data: Buffer) => {
        said += data.toString()
        const [, found] = /serves \d+ mounts? at (\S+)/.exec(said) ?? []
        if (found !== undefined) resolve(new URL(found))
      })
      child.once('exit', () => reject(new Error(said)))
    })
    return { child, url, said: () => said }
  }

  /** Resolves once nobody listens there any more. */
  async function closed({ hostname, port }: URL): Promise<void> {
    for (;;) {
      const isOpen = await new Promise<boolean>((done) => {
        const socket = createConnection({ host: hostname, port: Number(port) }, () => {
          socket.destroy()
          done(true)
        })
        socket.once('error', () => done(false))
      })
      if (!isOpen) return
    }
  }

  const ended = (child: ChildProcess) =>
    child.exitCode === null && child.signalCode === null ? once(child, 'exit') : []

  test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
    'builds, prints so, serves, and stops the server when npm gets %s',
    async (signal) => {
      const { child, url, said } = await start('npm', ['start', '--', '--http', '0'])
      expect(said()).toMatch(/Building hikidashi[\s\S]*built\n[\s\S]*serves \d+ mount/)
      expect(said()).not.toContain('Warning')
      child.kill(signal)
      await ended(child)
      await closed(url)
    },
  )

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'stops the server when the shell that npm starts gets %s',
    async (signal) => {
      // This one stays beside the server: there is something to do after it.
      const { child, url } = await start('sh', ['-c', 'node scripts/start.mjs . --http 0; true'])
      child.kill(signal)
      await ended(child)
      await closed(url)
    },
  )
})

test('a search over a dozen mounts causes no warning about listeners', { timeout: 60_000 }, async () => {
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-dozen-'))
  try {
    const addresses = Array.from({ length: 12 }, (_, i) => `file:///folder${i}`)
    const mounts = addresses.map((address, i) => {
      mkdirSync(join(home, `folder${i}`))
      writeFileSync(join(home, `folder${i}/a.md`), '# A drawer\n')
      return [address, { provider: 'files', root: `folder${i}` }]
    })
    const search = { 'search://all': { provider: 'search', over: addresses } }
    writeFileSync(
      join(home, 'hikidashi.json'),
      JSON.stringify({ mounts: { ...Object.fromEntries(mounts), ...search } }),
    )
    const found = await run(['search', 'drawer', '--config', 'hikidashi.json'], {
      cwd: home,
      env: { XDG_STATE_HOME: join(home, 'state') },
    })
    expect(found.code).toBe(0)
    expect(found.out).toContain('drawer')
    expect(found.err).not.toContain('MaxListenersExceededWarning')
  } finally {
    rmSync(home, { recursive: true })
  }
})
