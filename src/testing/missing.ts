import { isPath, parentOf } from '../core/path.ts'
import type { Context, Entry } from '../core/provider.ts'
import { compileTemplate } from '../core/template.ts'
import { encodePath } from '../core/uri.ts'
import type { Listed } from './listing.ts'
import { show } from './metadata.ts'
import type { PromiseId } from './promises.ts'
import { nameOf, type Run, sample } from './run.ts'

/**
 * Requests paths without an entry: variations of existing paths, names that programs often mishandle, and the expected ones.
 */
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

/** Returns a function that tells whether a path must have no entry: it is not listed, and matches no template. */
async function absence(run: Run, listed: Listed): Promise<(path: string) => boolean> {
  const paths = new Set([...listed.entries.map((entry) => entry.path), ...listed.directories])
  const outcome = await run.call(undefined, async (context) => (await run.provider.templates?.(context)) ?? [])
  const templates = outcome !== undefined && 'value' in outcome ? outcome.value : []
  const patterns = templates
    .map(({ template }) => template)
    // A template that is only `{+path}` matches exactly the listed paths.
    .filter((template) => !/^\{\+\w+\}$/.test(template))
    .flatMap((template) => {
      try {
        return [compileTemplate(template)]
      } catch {
        // `checkTemplates` reports templates that do not compile.
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
  // Prefer paths whose spelling changes with the normalization: there may be few of them.
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

/** Swaps the case of ASCII letters. */
function swapCase(path: string): string {
  return path.replace(/[a-zA-Z]/g, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

/** Compares the result of `stat` with the listed entry. `stat` may report more facts, but no different ones. */
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
