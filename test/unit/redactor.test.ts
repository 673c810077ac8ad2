import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createRedactor } from '../../src/secrets/redactor.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-redactor-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = join(folder, 'worker.cjs')
// A worker that finds the word "secret", and counts its jobs: the cut of a window, and the first byte, tell how many there were.
writeFileSync(
  file,
  `const { parentPort } = require('node:worker_threads')
let jobs = 0
parentPort.on('message', ({ window, bytes }) => {
  jobs++
  if (bytes !== undefined) {
    const changed = Buffer.from(bytes).includes('secret')
    const shown = changed ? Buffer.from('[' + jobs + ']') : bytes
    return parentPort.postMessage({ clean: { bytes: shown, changed } })
  }
  const text = window.text.slice(window.from)
  if (text.includes('break')) return parentPort.postMessage({ error: true })
  const changed = text.includes('secret')
  parentPort.postMessage({ part: { text: changed ? '[' + jobs + ']' : text, cut: window.text.length, changed } })
})
parentPort.postMessage('ready')
`,
)

const { signal } = new AbortController()
const none = { without: [] }

test('a text without secrets is not searched again, and has the same output', async () => {
  const redactor = createRedactor({ file })
  const look = (text: string, path = 'a.md', from = 0, final = true) =>
    redactor.window({ text, from, final }, { path, ...none }, signal)
  const first = await look('plain')
  expect(first).toEqual({ text: 'plain', cut: 5, changed: false })
  for (let again = 0; again < 5; again++) expect(await look('plain')).toEqual(first)
  expect(await look('plain', 'a.md', 2)).toEqual({ text: 'ain', cut: 5, changed: false })
  expect(await look('plain', 'a.md', 2)).toEqual({ text: 'ain', cut: 5, changed: false })
  // Two jobs until now. What had a secret is looked through each time: nothing of it is remembered.
  expect(await look('secret')).toEqual({ text: '[3]', cut: 6, changed: true })
  expect(await look('secret')).toEqual({ text: '[4]', cut: 6, changed: true })
  redactor.close()
})

test('the result of a search for secrets is cached only for one path, one part of a text and the same layers of detection', async () => {
  const redactor = createRedactor({ file })
  const look = (text: string, path: string, from: number, final: boolean, without: readonly 'decoded'[] = []) =>
    redactor.window({ text, from, final }, { path, without }, signal)
  await look('plain', 'a.md', 0, true)
  await look('plain', 'b.md', 0, true)
  await look('plain', 'a.md', 1, true)
  await look('plain', 'a.md', 0, false)
  await look('plain', 'a.md', 0, true, ['decoded'])
  // A lone surrogate is not the character that stands for one in UTF-8.
  await look('\ud800', 'a.md', 0, true)
  await look('\ufffd', 'a.md', 0, true)
  await redactor.bytes(Buffer.from('plain'), { path: 'a.md', ...none }, signal)
  expect(await look('secret', 'a.md', 0, true)).toMatchObject({ text: '[9]' })
  redactor.close()
})

test('a text without secrets below one header of a table is searched again below another', async () => {
  const redactor = createRedactor()
  const rows = '0,hunter2xy0Q\n1,Tr0ub4dor9z\n2,correct7Horse\n'
  const look = (head?: string) =>
    redactor.window(
      { text: rows, from: 0, final: true, ...(head === undefined ? {} : { head }) },
      { path: 'users.csv' },
      signal,
    )
  expect(await look('id,nickname')).toMatchObject({ changed: false })
  expect(await look()).toMatchObject({ changed: false })
  const clean = await look('id,password')
  expect(clean).toMatchObject({ changed: true })
  expect(JSON.stringify(clean)).not.toContain('hunter2xy0Q')
  redactor.close()
})

test.each(['xlsx', 'xlsb', 'xls', 'xlt', 'ods'])(
  'a table below the name of a sheet in .%s is redacted by its own header',
  async (type) => {
    const redactor = createRedactor()
    const text =
      'Plain\n\nid\tnickname\n0\tplainword\n\nUsers\n\nname\tpassword\nann\thunter2xy0Q\nbob\tcorrect7Horse\n'
    const clean = await redactor.window({ text, from: 0, final: true }, { path: `users.${type}` }, signal)
    expect(clean).toMatchObject({ changed: true })
    expect(JSON.stringify(clean)).toContain('plainword')
    expect(JSON.stringify(clean)).not.toMatch(/hunter2xy0Q|correct7Horse/)
    redactor.close()
  },
)

test('bytes without secrets are not searched again', async () => {
  const redactor = createRedactor({ file })
  const look = (text: string) => redactor.bytes(Buffer.from(text), { path: 'a.bin', ...none }, signal)
  for (let again = 0; again < 5; again++) {
    const clean = await look('plain')
    expect(clean).toMatchObject({ changed: false })
    expect(typeof clean === 'object' && 'bytes' in clean && Buffer.from(clean.bytes).toString()).toBe('plain')
  }
  const changed = await look('secret')
  expect(typeof changed === 'object' && 'bytes' in changed && Buffer.from(changed.bytes).toString()).toBe('[2]')
  redactor.close()
})

test('a failed search for secrets is not cached, and an aborted call ends', async () => {
  const redactor = createRedactor({ file })
  const look = (text: string, given = signal) =>
    redactor.window({ text, from: 0, final: true }, { path: 'a.md', ...none }, given)
  expect(await look('break')).toBe('crashed')
  expect(await look('break')).toBe('crashed')
  await look('plain')
  await expect(look('plain', AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  expect(await look('secret')).toMatchObject({ text: '[4]' })
  redactor.close()
})
