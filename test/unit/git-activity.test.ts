import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { countFileChanges } from '../../src/cli/operations/pack.ts'
import { planFolders } from '../../src/config/plan.ts'
import { countActivity } from '../../src/providers/git/list.ts'
import { createGitFolder } from '../support/git.ts'

const folder = createGitFolder()
/** A busy machine takes longer than the default. */
const timeoutMs = 60_000
afterAll(() => folder.dispose())

test('the number of changes of files is counted in the git history, without merges, and no command of the repository runs', async () => {
  const repository = folder.repository('one')
  const { dir } = repository
  expect(await countActivity({ timeoutMs, repository: dir })).toBeUndefined()
  repository.write('設計 one.md', '1')
  repository.write('sub/two.md', '1')
  repository.commit('first')
  repository.git('checkout', '-q', '-b', 'side')
  repository.write('side.md', '1')
  repository.commit('side')
  repository.git('checkout', '-q', 'main')
  repository.write('sub/two.md', '2')
  repository.commit('second')
  repository.git('merge', '-q', '--no-ff', '-m', 'merge', 'side')
  repository.git('config', 'core.fsmonitor', 'touch ran')
  repository.git('config', 'diff.external', 'touch ran')
  const counts = new Map([
    ['設計 one.md', 1],
    ['sub/two.md', 2],
    ['side.md', 1],
  ])
  expect(await countActivity({ timeoutMs, repository: dir })).toEqual(counts)
  expect([...((await countActivity({ timeoutMs, repository: dir, maxCommits: 1 })) ?? [])]).toEqual([['sub/two.md', 1]])
  expect(await countActivity({ repository: `${dir}/sub` })).toBeUndefined()
  expect(await countActivity({ timeoutMs, repository: dir, signal: AbortSignal.abort() })).toBeUndefined()

  const mounts = [
    ...planFolders([dir, `${dir}/sub`], {}),
    { address: 'git://one', folder: dir, config: { provider: 'git' as const, repository: '.' } },
  ]
  const { changes, known } = await countFileChanges(mounts, () => {}, timeoutMs)
  expect(existsSync(join(dir, 'ran'))).toBe(false)
  expect(known).toEqual([mounts[0]?.address, 'git://one'])
  const uris = ['%E8%A8%AD%E8%A8%88%20one.md', 'sub/two.md', 'none.md', '%zz'].map((path) => `${known[0]}/${path}`)
  expect([...uris, 'git://one/HEAD/side.md', 'git://one/status', 'other://x'].map(changes)).toEqual([
    ...[1, 2, undefined, undefined],
    ...[1, undefined, undefined],
  ])
})
