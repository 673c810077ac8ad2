import { type Layer, redactPhrase } from '../../secrets/find.ts'
import { parseDotenv } from './dotenv.ts'
import type { Format } from './formats.ts'
import { parseJson } from './json.ts'
import { judge, type Policy } from './judge.ts'
import { type Budget, createBudget, type Fault, fault, isParseFault, type Limits } from './limits.ts'
import { parseIni, parseProperties } from './lines.ts'
import { escapeStep, unescapeStep } from './pointer.ts'
import { showJson, showSource } from './shown.ts'
import { parseToml } from './toml.ts'
import { childOf, type Node, type Tree } from './tree.ts'
import { parseYaml } from './yaml.ts'

/** Request for a settings file: the file as it is, a part of it as JSON, or names that complete a pointer. */
export type Want =
  | { readonly kind: 'source' }
  | { readonly kind: 'json'; readonly steps: readonly string[] }
  | { readonly kind: 'names'; readonly typed: string }

export interface Ask {
  readonly text: string
  readonly path: string
  readonly format: Format
  readonly want: Want
  readonly policy: Policy
  readonly limits: Limits
  readonly without: readonly Layer[]
}

export type Answer =
  | { readonly text: string }
  | { readonly pointers: readonly string[]; readonly hasMore: boolean }
  | { readonly absent: true }
  | { readonly fault: Fault }

const parsers: Readonly<Record<Format, (text: string, budget: Budget) => Tree>> = {
  json: parseJson,
  yaml: parseYaml,
  toml: parseToml,
  ini: parseIni,
  dotenv: parseDotenv,
  properties: parseProperties,
}

const maxPointers = 100

/** Answers one question about a file. It throws nothing that holds a part of the file. */
export async function answer(ask: Ask): Promise<Answer> {
  try {
    return await find(ask)
  } catch (error) {
    if (isParseFault(error)) return { fault: error.fault }
    // A recursive function ran out of stack: always a RangeError.
    if (error instanceof RangeError) return fault('It is nested too deep to be read.', 0, ask.limits.maxDepth)
    throw error
  }
}

async function find({ text, path, format, want, policy, limits, without }: Ask): Promise<Answer> {
  const tree = parsers[format](text, createBudget(limits))
  if (want.kind === 'names') return names(tree.root, want.typed)
  // Of a file of environment variables, only what is named is shown.
  const denied = judge(tree, format === 'dotenv' ? { ...policy, show: 'allowed' } : policy)
  const source = { text, path, tree, denied, without }
  if (want.kind === 'source') return { text: await showSource(source) }
  const node = want.steps.reduce<Node | undefined>((found, step) => found && named(found, step), tree.root)
  return node === undefined ? { absent: true } : { text: await showJson(node, source) }
}

/** A child by a name that may be told: one that is a secret itself is as good as none. */
function named(node: Node, step: string): Node | undefined {
  return isSecretName(step) ? undefined : childOf(node, step)
}

const isSecretName = (name: string) => redactPhrase(name) !== name

/** Pointers to what lies in the part that is typed already, and begins with the rest. Never a value. */
function names(root: Node, typed: string): Answer {
  const slash = typed.lastIndexOf('/')
  if (typed !== '' && slash === -1) return { pointers: [], hasMore: false }
  const head = typed.slice(0, Math.max(0, slash))
  const start = unescapeStep(typed.slice(slash + 1))
  const steps = head === '' ? [] : head.slice(1).split('/').map(unescapeStep)
  const parent = steps.reduce<Node | undefined>((found, step) => found && named(found, step), root)
  if (parent === undefined || parent.kind === 'scalar') return { pointers: [], hasMore: false }
  const keys =
    parent.kind === 'table' ? [...new Set(parent.entries.map(({ key }) => key))] : parent.items.map((_, i) => String(i))
  const fitting = keys.filter((key) => key.startsWith(start) && key.isWellFormed() && !isSecretName(key))
  return {
    pointers: fitting.slice(0, maxPointers).map((key) => `${head}/${escapeStep(key)}`),
    hasMore: fitting.length > maxPointers,
  }
}
