import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createTextHistory } from '../../src/config/earlier.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { DeltaMetadata } from '../../src/core/earlier.ts'
import { metaKeys } from '../../src/core/meta.ts'
import type { View } from '../../src/core/view.ts'
import { files } from '../../src/providers/files/index.ts'
import { openStore } from '../../src/store/index.ts'
import { applyDiff } from '../support/patch.ts'
import { volumeOf } from '../support/volume.ts'
import { createRandom } from './history.ts'

// G14: a client that follows resources by deltas has the same texts as one that reads them whole, whatever is written, and across restarts.

const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-deltas-')))
const root = join(home, 'root')
const seed = Number(process.env.HIKIDASHI_SEED ?? Math.floor(Math.random() * 2 ** 31))
const random = createRandom(seed)
afterAll(() => rmSync(home, { recursive: true, force: true }))

const word = () => ['anchor', 'boat', 'crane', 'dock'][random.below(4)] ?? ''
const textOf = (lines: number) => Array.from({ length: lines }, () => `${word()} ${random.below(9)}\n`).join('')

/** Writes or removes a file: in place, by a rename, at the end, or twice at once with the same size. */
function write(name: string): void {
  const file = join(root, name)
  mkdirSync(dirname(file), { recursive: true })
  const way = random.below(6)
  if (way === 0) rmSync(file, { force: true })
  else if (way === 1) appendFileSync(file, textOf(1 + random.below(3)))
  else if (way === 2) {
    writeFileSync(join(home, 'new'), textOf(random.below(200)))
    renameSync(join(home, 'new'), file)
  } else if (way === 3) writeFileSync(file, `${textOf(random.below(50))}without a newline`)
  else {
    const text = textOf(40)
    writeFileSync(file, text.replace('a', 'b'))
    writeFileSync(file, text.replace('b', 'a'))
  }
}

async function readWhole(view: View, uri: string): Promise<string> {
  const [content] = (await view.read(uri)).contents
  return content !== undefined && 'text' in content ? content.text : ''
}

/** The texts of a client that reads only what changed, and of each only what is different. */
function createFollower() {
  const texts = new Map<string, { readonly text: string; readonly version: string }>()
  const states = { unchanged: 0, diff: 0, whole: 0 }
  let since: string | undefined

  const renew = async (view: View, uri: string): Promise<void> => {
    const known = texts.get(uri)
    const [content] = (await view.read(`${uri}?since=${known?.version ?? ''}`)).contents
    if (content === undefined || !('text' in content)) throw new Error(`${uri} is no text`)
    const delta = content.meta?.[metaKeys.delta] as DeltaMetadata | undefined
    const state = delta?.state ?? 'whole'
    states[state]++
    const text = { unchanged: known?.text ?? '', diff: '', whole: content.text }[state]
    const whole = state === 'diff' ? applyDiff(known?.text ?? '', content.text) : text
    texts.set(uri, { text: whole, version: content.version ?? '' })
  }

  return {
    texts,
    states,
    follow: async (view: View): Promise<void> => {
      const changed = await view.changed?.({ limit: 10_000, ...(since === undefined ? {} : { since }) })
      if (changed === undefined) throw new Error('The view does not tell of changes.')
      if (since === undefined || changed.unknown) {
        texts.clear()
        for (const { uri } of (await view.list()).items) await renew(view, uri)
      }
      for (const { uri } of [...changed.created, ...changed.updated]) await renew(view, uri)
      for (const { uri } of changed.deleted) texts.delete(uri)
      since = changed.since
    },
  }
}

test(`a client that follows texts by deltas has the same texts as full reads return, also after restarts (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  mkdirSync(root)
  for (let file = 0; file < 20; file++) writeFileSync(join(root, `${file}.txt`), textOf(60))
  const follower = createFollower()
  const rounds = volumeOf(400, 30)
  const perRestart = Math.max(10, Math.ceil(rounds / 5))
  for (let begun = 0; begun < rounds; begun += perRestart) {
    // A server ends, and another one with the same store begins.
    const store = await openStore({ sqlite: { file: join(home, 'store.sqlite') } })
    const provider = await files({ root, watch: false })
    const earlier = createTextHistory(async () => store, [], undefined)
    const catalog = createCatalog({ mounts: [{ address: 'files://docs', provider }], earlier: async () => earlier })
    const view = catalog.view({ id: 'a', roles: [] })
    for (let round = begun; round < Math.min(rounds, begun + perRestart); round++) {
      for (let writes = random.below(8); writes > 0; writes--)
        write(`${random.below(20)}${['', '/deep'][random.below(2)]}.txt`.replace('/deep.txt', '-deep/a.txt'))
      await follower.follow(view)
      const listed = (await view.list()).items.map(({ uri }) => uri)
      expect([...follower.texts.keys()].sort()).toEqual([...listed].sort())
      for (const uri of listed)
        expect(follower.texts.get(uri)?.text, `${uri} in round ${round}, seed ${seed}`).toBe(await readWhole(view, uri))
    }
    await catalog.close()
    await store.close()
  }
  // Each way of an answer was tried.
  expect(follower.states.diff).toBeGreaterThan(0)
  expect(follower.states.whole).toBeGreaterThan(0)
})
