import { compileGlobs } from '../../core/glob.ts'
import { redactPhrase } from '../../secrets/find.ts'
import { type KeyKind, kindOfKey, looksOpaque } from '../../secrets/keys.ts'
import { isNothing } from '../../secrets/values.ts'
import { type Entry, escapeStep, type Node, type Scalar, type Table, type Tree } from './tree.ts'

export interface Policy {
  /** `safe`: shows values with neither a name nor a form that looks secret. `allowed`: shows only those that `allow` names. */
  readonly show: 'safe' | 'allowed'
  /**
   * Globs over pointers (`/db/*`) or, without a slash, over names at any depth (`*_HOST`). A value whose name sounds secret is
   * shown only when a pattern without wildcards names it.
   */
  readonly allow: readonly string[]
}

/** The hidden values, wherever they are referred to. */
export type Denied = ReadonlySet<Scalar>

const wildcard = /[*?[\]{}\\]/

/** Decides for each value, by the names above it, whether it is shown. The detectors judge the value itself. */
export function judge({ root, commented = [] }: Tree, { show, allow }: Policy): Denied {
  const named = compileGlobs(allow.filter((pattern) => !wildcard.test(pattern)))
  const matched = compileGlobs(allow)
  const denied = new Set<Scalar>()

  const judgeScalar = (scalar: Scalar, path: string, secret: boolean): void => {
    if (path !== '' && named(path)) return
    if (secret) denied.add(scalar)
    else if (path !== '' && matched(path)) return
    else if (show === 'allowed' || isOpaque(scalar.text)) denied.add(scalar)
  }

  /** @param secret Whether a name above hides everything below it. */
  const visit = (node: Node, path: string, secret: boolean): void => {
    if (node.kind === 'scalar') judgeScalar(node, path, secret)
    else if (node.kind === 'table') for (const entry of node.entries) visitEntry(entry, node, path, secret)
    else
      for (const [i, item] of node.items.entries())
        visit(item, join(path, String(i)), secret || isValueOfOption(item, node.items[i - 1]))
  }

  const visitEntry = ({ key, value }: Entry, table: Table, path: string, secret: boolean): void => {
    const at = join(path, escapeStep(key))
    const kind = kindOfKey(key) ?? kindOfKeyIn(path, key)
    // A weak name affects only its own value, or a list of values.
    const own = kind === 'strong' || (kind === 'weak' && value.kind !== 'table')
    visit(value, at, secret || own || isValueOfSecret(key, table) || isKubernetesSecret(key, table))
  }

  visit(root, '', false)
  for (const { key, value } of commented) visit(value, escapeStep(key), kindOfKey(key) !== undefined)
  return denied
}

const join = (path: string, step: string) => (path === '' ? step : `${path}/${step}`)

/** Whether a value looks random, even without the parts that the detectors know, such as the password in a URL. */
function isOpaque(text: string): boolean {
  return looksOpaque(text) && looksOpaque(redactPhrase(text))
}

/** Whether a `key` is secret depends on the name above it: `api: { key: … }`. */
function kindOfKeyIn(path: string, key: string): KeyKind {
  return /keys?$/i.test(key) ? kindOfKey(`${path.slice(path.lastIndexOf('/') + 1)}_${key}`) : undefined
}

const nameKeys = /^(?:name|key|id|variable|field)$/i
const valueKeys = /^(?:value|val|default|content)$/i

/** Whether a value belongs to a name beside it: `{ name: DB_PASSWORD, value: hunter2 }`. */
function isValueOfSecret(key: string, { entries }: Table): boolean {
  if (!valueKeys.test(key)) return false
  return entries.some(
    (entry) => nameKeys.test(entry.key) && entry.value.kind === 'scalar' && kindOfKey(entry.value.text) !== undefined,
  )
}

/** Whether a value belongs to the option before it: `["--password", "hunter2"]`. */
function isValueOfOption(item: Node, before: Node | undefined): boolean {
  if (before?.kind !== 'scalar' || item.kind !== 'scalar' || item.text.startsWith('-')) return false
  const name = /^--?([A-Za-z][\w-]{1,40})$/.exec(before.text)?.[1]
  return name !== undefined && kindOfKey(name) !== undefined
}

/** Whether a key holds the data of a Kubernetes Secret, where every value is secret, whatever its name. */
function isKubernetesSecret(key: string, { entries }: Table): boolean {
  if (key !== 'data' && key !== 'stringData') return false
  return entries.some((entry) => entry.key === 'kind' && entry.value.kind === 'scalar' && entry.value.text === 'Secret')
}

/** Returns the hidden values that are long and unusual enough to be searched in the rest of the file. */
export function telling(denied: Denied): readonly string[] {
  return [...denied]
    .map(({ text }) => text)
    .filter(
      (text) =>
        text.length >= 8 && !isNothing(text) && (looksOpaque(text) || (/\d/.test(text) && /[A-Za-z]/.test(text))),
    )
}
