import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { bagsHere, createThreadCount } from '../../src/context/bags.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

const open = (file?: string) => {
  const { count, close } = createThreadCount(file)
  closing.push(close)
  return count
}

const batches = Array.from({ length: 5 }, (_, batch) =>
  Array.from({ length: 64 }, (_, text) => `text ${text} of batchNumber${batch}: 東京タワー, naïve kettles and stones`),
)

test('a thread counts the words of each text as this one does, in their order', async () => {
  const count = open()
  const counted = await Promise.all([count([]), ...batches.map(count)])
  expect(counted).toEqual([[], ...(await Promise.all(batches.map(bagsHere)))])
})

test.each([
  ['that dies at the first text', 'process.exit(1)'],
  ['that does not start', "throw new Error('no')"],
])('the words are counted here in place of a thread %s', async (_, code) => {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'worker.mjs')
  const onText = code.startsWith('throw')
    ? code
    : `parentPort.on('message', () => { ${code} }); parentPort.postMessage('ready')`
  writeFileSync(file, `import { parentPort } from 'node:worker_threads'\n${onText}\n`)
  const count = open(file)
  const [first = []] = batches
  expect(await count(first)).toEqual(await bagsHere(first))
  expect(await count(first)).toEqual(await bagsHere(first))
})
