import { isPath, parentOf } from '../core/path.ts'
import type { Context, Entry } from '../core/provider.ts'
import { compileTemplate } from '../core/template.ts'
import { encodePath } from '../core/uri.ts'
import type { Listed } from './listing.ts'
import { show } from './metadata.ts'
import type { PromiseId } from './promises.ts'
import { nameOf, type Run, sample } from './run.ts'

/** Asks for what is not there: names close to those that are, names that programs trip over, and what was expected. */
export async function checkMissing(run: Run, listed: Listed, expected: readonly string[]): Promise<void> {
  const few = Math.ceil(run.bounds.samples / 3)
  const entries = sample(listed.entries, few)
  const names = new Set(['hikidashi-no-such-entry', '__proto__', 'constructor', 'toString', 'x'.repeat(5000)])
  for (const { path } of entries)
    names
      .add(`${path}x`)
      .add(`${path}/`)
      .add(`${path}/x`)
      .add(`${parentOf(path)}hikidashi-no-such-directory/`)
  for (const directory of sample(listed.directories, few)) names.add(directory.slice(0, -1))
  const isAbsent = await absence(run, listed)
  for (const path of new Set([...[...names].filter(isAbsent), ...expected])) await checkAbsent(run, path)
  if (!run.broken('read-missing', 'stat-missing', 'list-prefix', 'list-nothing'))
    await checkSpelling(run, listed, isAbsent)
}

/** Whether nothing can be at a path: it is not listed, nor does a template make it more than the listing shows. */
async function absence(run: Run, listed: Listed): Promise<(path: string) => boolean> {
  const paths = new Set([...listed.entries.map((entry) => entry.path), ...listed.directories])
  const outcome = await run.call(undefined, async (context) => (await run.provider.templates?.(context)) ?? [])
  const templates = outcome !== undefined && 'value' in outcome ? outcome.value : []
  const patterns = templates
    .map(({ template }) => template)
    // A bare {+path} names what is listed, and nothing else.
    .filter((template) => !/^\{\+\w+\}$/.test(template))
    .flatMap((template) => {
      try {
        return [compileTemplate(template)]
      } catch {
        // Another promise is about templates that do not compile.
        return []
      }
    })
  return (path) =>
    isPath(path) && !paths.has(path) && !patterns.some((pattern) => pattern.match(encodePath(path)) !== undefined)
}

async function checkAbsent(run: Run, path: string, promise?: PromiseId): Promise<void> {
  const { provider } = run
  if (provider.stat !== undefined) {
    const outcome = await run.call(path, async (context) => provider.stat?.(path, context))
    judge(promise ?? 'stat-missing', outcome, (entry) => `stat answered ${show(entry)}`)
  }
  const outcome = await run.call(path, (context) => provider.read({ path, params: new Map() }, context))
  judge(promise ?? 'read-missing', outcome, (contents) => `read answered ${contents.length} contents`)

  function judge<T>(id: PromiseId, result: Awaited<ReturnType<typeof run.call<T>>>, words: (value: T) => string) {
    if (result === undefined) return
    if ('value' in result) run.fail(id, words(result.value), path)
    else if (result.error.kind !== 'not-found') run.fail(id, `it threw ${nameOf(result.error)}`, path)
  }
}

/** Asks for listed paths, and for directories of them, in another case and normalization. */
async function checkSpelling(run: Run, listed: Listed, isAbsent: (path: string) => boolean): Promise<void> {
  const few = Math.ceil(run.bounds.samples / 3)
  const twinsOf = (path: string) => [path.normalize('NFC'), path.normalize('NFD'), swapCase(path)]
  // Those whose twins differ are the interesting ones, and there may be few of them.
  const telling = listed.entries.filter((entry) => entry.path.normalize('NFC') !== entry.path.normalize('NFD'))
  for (const { path } of [...sample(telling, few), ...sample(listed.entries, few)])
    for (const twin of twinsOf(path)) if (isAbsent(twin)) await checkAbsent(run, twin, 'spelling')
  for (const directory of sample(listed.directories, few))
    for (const prefix of twinsOf(directory)) {
      if (listed.entries.some((entry) => entry.path.startsWith(prefix))) continue
      await run.walk('spelling', { prefix }, (entry) => {
        run.fail('spelling', `a listing below ${show(prefix)} yielded it`, entry.path)
        return false
      })
    }
}

/** ASCII letters in the other case; all others as they are. */
function swapCase(path: string): string {
  return path.replace(/[a-zA-Z]/g, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

/** Compares what `stat` says with what is listed. It may know more, and nothing else. */
export async function checkStat(run: Run, entry: Entry): Promise<void> {
  const { provider } = run
  if (provider.stat === undefined) return
  const { path } = entry
  const outcome = await run.call(path, async (context: Context) => provider.stat?.(path, context))
  if (outcome === undefined) return
  if ('error' in outcome) return run.fail('stat-same', `it threw ${nameOf(outcome.error)}`, path)
  const said = outcome.value
  if (said?.path !== path) return run.fail('stat-same', `it is about ${show(said?.path)}`, path)
  for (const fact of ['size', 'modified', 'version', 'mimeType'] as const)
    if (entry[fact] !== undefined && !Object.is(said[fact], entry[fact]))
      run.fail('stat-same', `${fact}: listed ${show(entry[fact])}, stat says ${show(said[fact])}`, path)
}
