import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { SettingsPart } from '../../src/providers/settings/answer.ts'
import { createSettingsReader } from '../../src/providers/settings/desk.ts'
import { defaultSettingsLimits } from '../../src/providers/settings/tree.ts'
import { memory } from '../support/memory.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-desk-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = join(folder, 'worker.cjs')
// A worker that finds the word "secret", and tells how many questions there were in what it answers then.
writeFileSync(
  file,
  `const { parentPort } = require('node:worker_threads')
let asked = 0
parentPort.on('message', ({ text, want }) => {
  asked++
  parentPort.postMessage({ text: want.kind === 'json' || text.includes('secret') ? 'question ' + asked : text })
})
parentPort.postMessage('ready')
`,
)

test('a settings file without secrets is searched once, and again when its content or path differs', async () => {
  const files: Record<string, { text: string }> = { 'a.json': { text: '{"a":1}' }, 'b.json': { text: '{"a":1}' } }
  const desk = createSettingsReader({
    // As the files are at that moment.
    source: { list: (...given) => memory(files).list(...given), read: (...given) => memory(files).read(...given) },
    policy: { show: 'safe', allow: [] },
    limits: defaultSettingsLimits,
    timeoutMs: 5000,
    without: [],
    file,
  })
  const context = { principal: { id: 'alice', roles: [] }, signal: new AbortController().signal }
  const ask = async (path: string, want: SettingsPart = { kind: 'source' }) => {
    const { answer } = await desk.ask(path, 'json', want, context)
    return 'text' in answer ? answer.text : ''
  }
  for (let again = 0; again < 3; again++) expect(await ask('a.json')).toBe('{"a":1}')
  // One question until now. A part of the file is asked for each time.
  expect(await ask('a.json', { kind: 'json', steps: [] })).toBe('question 2')
  expect(await ask('b.json')).toBe('{"a":1}')
  files['a.json'] = { text: '{"a":"secret"}' }
  // What had a secret is looked through each time: nothing of it is remembered.
  expect(await ask('a.json')).toBe('question 4')
  expect(await ask('a.json')).toBe('question 5')
  files['a.json'] = { text: '{"a":1}' }
  expect(await ask('a.json')).toBe('{"a":1}')
  expect(await ask('a.json', { kind: 'json', steps: [] })).toBe('question 6')
  desk.close()
})
