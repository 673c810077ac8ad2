import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { deflateSync, inflateSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { captureCommand, type Machine } from '../../src/providers/screen/command.ts'
import { createScreen, type ScreenOptions, screen } from '../../src/providers/screen/index.ts'
import { checkProvider } from '../../src/testing/index.ts'
import { contextOf, createFolder, type Folder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { hasXvfb, startXvfb, type Xvfb, xvfbReason } from '../support/xvfb.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const x11: Machine = { platform: 'linux', env: { DISPLAY: ':7', HOME: '/home/me', SECRET: 'x' } }
const mac: Machine = { platform: 'darwin', env: { SECRET: 'x' } }
const windows: Machine = { platform: 'win32', env: { SystemRoot: 'C:\\Windows', SECRET: 'x' } }

/** The bytes of a picture that a provider answers. */
async function read(provider: Provider, path = 'display1', signal?: AbortSignal): Promise<Buffer> {
  const [content] = await provider.read({ path, params: new Map() }, contextOf(signal))
  if (content === undefined || !('bytes' in content)) throw new Error('it answered no bytes')
  expect(content).toMatchObject({ mimeType: 'image/png', size: content.bytes.length })
  return Buffer.from(content.bytes)
}

/** Width, height and the first pixel of a PNG of 8 bits a colour. In the first line and column no filter changes anything. */
function look(png: Buffer) {
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const pixels = inflateSync(Buffer.concat(parts))
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20), pixel: pixels.subarray(1, 4).toString('hex') }
}

describe('the command of a screenshot', () => {
  test('of maim writes to standard output, and that of scrot to a file, with the environment variables of the display only', () => {
    const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', DISPLAY: ':0.1', HOME: '/home/me' }
    expect(captureCommand('/usr/bin/maim', ':0.1', x11)).toEqual({
      ...{ program: '/usr/bin/maim', args: ['--hidecursor', '--format=png'], env, from: 'stdout' },
    })
    expect(captureCommand('/opt/scrot', ':0.1', x11)).toMatchObject({
      ...{ args: ['--silent', '--overwrite'], env, from: 'file' },
    })
    const { env: keyed } = captureCommand('/usr/bin/maim', ':0', {
      ...x11,
      env: { XAUTHORITY: '/run/key', HOME: '/x' },
    })
    expect(keyed).toEqual({ PATH: '/usr/bin:/bin', LC_ALL: 'C', DISPLAY: ':0', XAUTHORITY: '/run/key' })
  })

  test('of screencapture writes to a file, without a sound', () => {
    expect(captureCommand('/usr/sbin/screencapture', '2', mac)).toEqual({
      program: '/usr/sbin/screencapture',
      args: ['-x', '-t', 'png', '-D', '2'],
      env: { PATH: '/usr/bin:/bin' },
      from: 'file',
    })
  })

  test('of PowerShell is a fixed script that differs only in the number of the display', () => {
    const script = (display: string) => {
      const { args, env, from } = captureCommand('powershell.exe', display, windows)
      expect(args.slice(0, 4)).toEqual(['-NoLogo', '-NoProfile', '-NonInteractive', '-EncodedCommand'])
      expect({ env, from }).toEqual({
        env: { SystemRoot: 'C:\\Windows', PATH: 'C:\\Windows\\System32' },
        from: 'base64',
      })
      return Buffer.from(args[4] ?? '', 'base64').toString('utf16le')
    }
    expect(script('1')).toContain('AllScreens)[0]')
    expect(script('3').replace('AllScreens)[2]', '')).toBe(script('1').replace('AllScreens)[0]', ''))
  })
})

describe('a screen mount with fake programs', () => {
  let folder: Folder
  let before: string | undefined
  beforeEach(() => {
    folder = createFolder()
    mkdirSync(folder.at('tmp'))
    before = process.env.TMPDIR
    process.env.TMPDIR = folder.at('tmp')
    writeFileSync(folder.at('picture.png'), tinyPng())
  })
  afterEach(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    folder.remove()
  })

  const open = (script: string, options: ScreenOptions = {}, machine = x11) => {
    const names = { linux: 'maim', darwin: 'screencapture', win32: 'powershell.exe' } as Record<string, string>
    const program = folder.at(names[machine.platform] ?? 'maim')
    writeFileSync(program, `#!/bin/sh\nhere='${folder.root}'\n${script}\n`)
    chmodSync(program, 0o755)
    return createScreen({ program, intervalMs: 0, ...options }, machine)
  }
  const left = () => readdirSync(folder.at('tmp'))
  const shows = 'cat "$here/picture.png"'

  test('lists the displays, reads each with its name, and gives "not-found" for other paths', async () => {
    const provider = await open(`echo "$DISPLAY $SECRET$XAUTHORITY" >> "$here/log"; ${shows}`, {
      displays: [':1', ':2.1'],
    })
    const entries = []
    for await (const entry of provider.list({}, contextOf())) entries.push(entry)
    expect(entries).toEqual([
      { path: 'display1', title: 'Display 1', mimeType: 'image/png', audience: ['user'] },
      { path: 'display2', title: 'Display 2', mimeType: 'image/png', audience: ['user'] },
    ])
    expect(await read(provider, 'display2')).toEqual(tinyPng())
    await read(provider)
    expect(readFileSync(folder.at('log'), 'utf8')).toBe(':2.1 \n:1 \n')
    for (const path of ['display3', 'display0', 'display01', '', 'display1/', 'display1/x'])
      await expect(read(provider, path)).rejects.toMatchObject({ kind: 'not-found' })
    expect(left()).toEqual([])
  })

  test('passes the contract suite for providers', async () => {
    const provider = await open(shows, { displays: Array.from({ length: 12 }, (_, i) => `:${i}`) })
    const report = await checkProvider(provider, { missing: ['display13', 'display'] }, { samples: 3 })
    expect(report).toEqual({ problems: [], examined: 12, complete: true })
  })

  test('runs one capture at a time, with a pause, and refuses too many with a time to retry', async () => {
    const provider = await open(
      `mkdir "$here/lock" || exit 1; date +%s%N >> "$here/log"; ${shows}; rmdir "$here/lock"`,
      {
        intervalMs: 150,
      },
    )
    const reads = await Promise.allSettled(Array.from({ length: 10 }, () => read(provider)))
    expect(reads.filter(({ status }) => status === 'fulfilled')).toHaveLength(8)
    for (const outcome of reads)
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ kind: 'unavailable', detail: { retryAfter: 1 } })
    const times = readFileSync(folder.at('log'), 'utf8').trim().split('\n').map(Number)
    for (const [index, time] of times.entries())
      if (index > 0) expect(time - (times[index - 1] ?? 0)).toBeGreaterThanOrEqual(149e6)
    // The places are free again.
    expect(await read(provider)).toEqual(tinyPng())
  })

  test.each([
    ['fails', 'echo secret >&2; exit 1', 'unavailable'],
    ['answers nothing', 'exit 0', 'unavailable'],
    ['answers no PNG', 'echo GIF89a', 'unavailable'],
    ['takes too long', 'exec sleep 600', 'unavailable'],
    ['never ends its picture', `${shows}; exec sleep 600`, 'unavailable'],
    ['answers too much', 'exec head -c 100000000 /dev/zero', 'too-large'],
  ])('reports a program that %s', async (_, script, kind) => {
    const provider = await open(script, { timeoutMs: 1000, maxBytes: 10_000 })
    const error: unknown = await read(provider).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind })
    expect(String(error)).not.toContain('secret')
  })

  test('ends the program of a caller that cancels, and reads nothing once it is closed', async () => {
    const provider = await open('echo $$ > "$here/pid"; exec sleep 600')
    const controller = new AbortController()
    const reading = read(provider, 'display1', controller.signal).catch((error: unknown) => error)
    await vi.waitFor(() => expect(Number(readFileSync(folder.at('pid'), 'utf8'))).toBeGreaterThan(0), {
      timeout: 30_000,
    })
    controller.abort(new Error('gone'))
    expect(await reading).toMatchObject({ message: 'gone' })
    const pid = Number(readFileSync(folder.at('pid'), 'utf8'))
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 30_000 })
    await provider.close?.()
    await expect(read(provider)).rejects.toThrow('closed')
  })

  const writes = 'for last; do :; done; stat -c %a "$last" . > "$here/modes"; cp "$here/picture.png" "$last"'

  test.each([
    ['is read', writes, true],
    ['is not a picture', 'for last; do :; done; echo no > "$last"', false],
    ['is too large', 'for last; do :; done; head -c 20000 /dev/zero > "$last"', false],
    ['is removed', 'for last; do :; done; rm "$last"', false],
    ['is not written in time', 'exec sleep 600', false],
  ])('leaves no file behind if the file %s (macOS)', async (_, script, good) => {
    const provider = await open(script, { timeoutMs: 1500, maxBytes: 10_000 }, mac)
    const outcome = await read(provider).catch(() => undefined)
    expect(outcome !== undefined).toBe(good)
    if (good) expect(readFileSync(folder.at('modes'), 'utf8')).toBe('600\n700\n')
    expect(left()).toEqual([])
  })

  test('decodes the base64 output of PowerShell', async () => {
    expect(await read(await open(`/usr/bin/base64 -w0 "$here/picture.png"`, {}, windows))).toEqual(tinyPng())
  })

  test('gives advice without a display, with an invalid name of a display, without a program, and with one that it does not use', async () => {
    const none: Machine = { platform: 'linux', env: {} }
    await expect(createScreen({}, none)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('"displays"'),
      detail: { reason: 'configuration' },
    })
    await expect(createScreen({}, none)).rejects.toThrow('The variable DISPLAY is not set'.slice(4))
    for (const display of ['0', ':0;reboot', '-display', ':0\n', '$(id)', ':0.1.2', 'x'.repeat(300)])
      await expect(createScreen({ displays: [display] }, x11)).rejects.toThrow('is not the name of a display')
    for (const display of [':0', '0', '1;', '100', '-1'])
      await expect(createScreen({ displays: [display] }, windows)).rejects.toThrow('is not the name of a display')
    for (const program of ['maim', './maim', '/bin/sh', '/none/maim', folder.root])
      await expect(createScreen({ program }, x11)).rejects.toMatchObject({
        message: expect.stringContaining('"program"'),
        detail: { reason: 'configuration' },
      })
    const path = process.env.PATH
    process.env.PATH = `.:${folder.at('tmp')}`
    await expect(createScreen({}, x11).finally(() => (process.env.PATH = path))).rejects.toThrow('apt-get install maim')
  })
})

requires(
  'xvfb',
  hasXvfb,
  xvfbReason,
)('on a display', () => {
  let display: Xvfb
  beforeAll(async () => {
    display = await startXvfb()
  })
  afterAll(() => display?.close())

  test.each(['/usr/bin/maim', '/usr/bin/scrot'])('a screenshot shows the current screen (%s)', async (program) => {
    const provider = await screen({ program, displays: [display.display], intervalMs: 0 })
    for (const colour of ['336699', 'cc0011']) {
      await display.paint(`#${colour}`)
      await vi.waitFor(
        async () => expect(look(await read(provider))).toEqual({ width: 320, height: 200, pixel: colour }),
        {
          timeout: 30_000,
        },
      )
    }
  })

  test('a screenshot of a missing display gives the error "unavailable"', async () => {
    const provider = await screen({ displays: [':65000'], intervalMs: 0 })
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

/** One pixel. */
function tinyPng(): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, Buffer.from(type, 'latin1'), data, Buffer.alloc(4)])
  }
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0])
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const parts = [
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from([0, 1, 2, 3]))),
    chunk('IEND', Buffer.alloc(0)),
  ]
  return Buffer.concat([signature, ...parts])
}
