import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that took about twenty seconds of a whole run or more. They begin early, also in a run of which it is not
 * known yet how long files take: by their size they would be among the last, and leave processors with nothing to do.
 */
export const longest: readonly string[] = [
  ...['guarantees/replicas', 'attack/git', 'toolkit', 'attack/cancelling', 'attack/watch', 'e2e/remote'],
  ...['unit/client-live', 'unit/mysql', 'attack/postgres', 'attack/subscriptions', 'e2e/replicas', 'unit/files-watch'],
  ...['e2e/installed', 'e2e/explorer-preview', 'e2e/store', 'unit/postgres', 'wire/schema', 'unit/objects', 'start'],
  ...['e2e/inspector', 'contract/s3-ceph', 'e2e/changes-clients', 'e2e/explorer-app', 'e2e/metrics', 'e2e/search'],
  ...['unit/testing', 'unit/git', 'unit/git-open', 'unit/git-watch'],
].map((name) => `test/${name}.test.ts`)

/**
 * The order in which files run: first those with a process each, with those that wait for databases, processes and time-outs spread
 * evenly among those that compute; then those that start servers and share the process of their worker; the longest first in both. Last
 * come the unit tests that share a process: each is short, so that the processors are busy to the end.
 */
export class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = longestFirst(await super.sort(files), ({ moduleId }) => moduleId)
    const of = (name: string) => sorted.filter(({ project }) => project.name === name)
    const mixed = spread(of('waiting'), of('together'))
    const sharing = [...of('served'), ...of('sharing')]
    const rest = sorted.filter((file) => !mixed.includes(file) && !sharing.includes(file))
    return [...mixed, ...rest, ...sharing]
  }
}

/** Puts those of {@link longest} before all others, which keep their order. */
export function longestFirst<T>(files: readonly T[], pathOf: (file: T) => string): readonly T[] {
  const isLong = (file: T) => longest.some((path) => pathOf(file).endsWith(`/${path}`))
  return [...files.filter(isLong), ...files.filter((file) => !isLong(file))]
}

/** Puts some evenly between others: the last of them before the last fifth, which is of the shortest files. */
export function spread<T>(some: readonly T[], others: readonly T[]): readonly T[] {
  const distance = Math.max(1, (others.length * 0.8) / some.length)
  const all: T[] = []
  let next = 0
  for (const [index, other] of others.entries()) {
    for (; next < some.length && next * distance <= index; next++) all.push(some[next] as T)
    all.push(other)
  }
  return [...all, ...some.slice(next)]
}
