import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The order in which files run: first those that share the process of their worker, one after the other; then those with a process each,
 * the longest first, with those that wait for databases, processes and time-outs spread evenly among those that compute. One beside the
 * other, they keep the processors busy to the end.
 */
export class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const of = (name: string) => sorted.filter(({ project }) => project.name === name)
    const mixed = spread(of('waiting'), of('together'))
    const sharing = [...of('sharing'), ...of('served')]
    const rest = sorted.filter((file) => !mixed.includes(file) && !sharing.includes(file))
    return [...sharing, ...mixed, ...rest]
  }
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
