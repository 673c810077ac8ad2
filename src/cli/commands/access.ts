import type { Command } from 'commander'
import { openLeftOutExplainer } from '../../config/open-mount.ts'
import { type PlannedMount, planConfig } from '../../config/plan.ts'
import { type AccessRule, compileVerdict, type Verdict } from '../../core/access.ts'
import { fallbackTo } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Principal } from '../../core/provider.ts'
import { createResolver, type ResolvableMount, type ResolvedUri } from '../../core/router.ts'
import type { LeftOutReason } from '../../providers/files/index.ts'
import { explainLeftOut } from '../operations/left-out.ts'
import { requireLocalSetUp } from '../operations/local.ts'
import { splitNames } from '../operations/source.ts'
import { CommandError, exitCodes, helpExamples, usageError } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { escapeText } from '../terminal/text.ts'

interface CheckOptions {
  readonly as?: readonly string[]
  readonly scopes?: readonly string[]
  readonly config?: string
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command.description('Explains the access of callers to resources.').addHelpText(
    ...helpExamples(`
  hikidashi access check docs://manual/internal/plan.md --as guest`),
  )
  command
    .command('check')
    .summary('explain whether a caller may see a URI')
    .description(
      `Explains whether a caller may see a URI: its mount, and the access rule that allows or denies it. For a folder of this
machine it also tells if the mount leaves the file out, and by which rule. No other source is opened.`,
    )
    .argument('<uri>', 'the URI to check')
    .option(
      '--as <roles>',
      'the roles of the caller, separated by commas; by default those of the configuration',
      splitNames,
    )
    .option(
      '--scopes <scopes>',
      "the OAuth scopes of the caller's token, separated by commas; by default all",
      splitNames,
    )
    .option('--config <file>', 'the configuration; by default hikidashi.json here')
    .option('--json', 'print the answer as JSON')
    .helpOption('-h, --help', 'show this help')
    .addHelpText(
      ...helpExamples(`
  hikidashi access check docs://manual/internal/plan.md --as guest
  hikidashi access check docs://manual/ --as analyst,auditor --json`),
    )
    .action((uri: string, options: CheckOptions) => check(uri, options, io))
}

interface AccessReport {
  readonly uri: string
  readonly roles: readonly string[]
  readonly allowed: boolean
  readonly reason: 'no-mount' | 'no-rules' | 'missing-scope' | 'allowed-by-rule' | 'denied-by-rule' | 'no-rule-allows'
  readonly mount?: string
  readonly path?: string
  /** The rule that decided, and its index, from 0. */
  readonly rule?: { readonly index: number; readonly rule: AccessRule }
  readonly missingScopes?: readonly string[]
  readonly leftOut?: { readonly reason: LeftOutReason; readonly why: string }
  readonly below?: 'all' | 'some' | 'none'
}

async function check(uri: string, options: CheckOptions, io: Io): Promise<void> {
  const { out } = io
  const { config, principal } = await requireLocalSetUp(
    options.config === undefined ? {} : { config: options.config },
    io,
  )
  if (config === undefined) throw usageError('The current folder has no configuration. Name one with --config FILE.')
  const roles = options.as ?? principal.roles
  const who: Principal = { id: 'check', roles, ...defined({ scopes: options.scopes }) }
  const planned = planConfig(config)
  const mounts = planned.map(({ address, aliases, config: { access, scopes } }) => ({
    address,
    ...defined({ aliases, rules: access }),
    scopes: scopes ?? [],
  }))
  const judged = judge(uri, who, createResolver(mounts)(uri))
  const leftOut = judged.allowed ? await leftOutBy(judged, planned) : undefined
  const answer: AccessReport = leftOut === undefined ? judged : { ...judged, leftOut }
  if (options.json) await writeJson(out, answer)
  else await out.write(`${explain(answer).map(escapeText).join('\n')}\n`)
  if (leftOut !== undefined)
    throw new CommandError(exitCodes.notFound, 'The mount leaves this path out for every caller.')
  if (!answer.allowed && (answer.below ?? 'none') === 'none')
    throw new CommandError(exitCodes.notFound, refusal(answer.reason))
}

function refusal(reason: AccessReport['reason']): string {
  if (reason === 'no-mount') return 'The URI is in no mount of the configuration.'
  if (reason === 'missing-scope') return 'A request of this caller is refused, because its token lacks a scope.'
  return 'The resource is hidden from this caller, as if it did not exist.'
}

/** Returns `undefined` if the mount does not leave the path out. A missing file is judged by its path. */
async function leftOutBy(
  { mount, path = '' }: AccessReport,
  planned: readonly PlannedMount[],
): Promise<AccessReport['leftOut'] | undefined> {
  const plannedMount = planned.find(({ address }) => address === mount)
  if (plannedMount === undefined) return undefined
  const explainer = await openLeftOutExplainer(plannedMount).catch(fallbackTo(undefined))
  try {
    const why = await explainer?.explain(path, new AbortController().signal)
    if (why === undefined || why.reason === 'missing') return undefined
    return { reason: why.reason, why: explainLeftOut(why, path) }
  } finally {
    explainer?.close()
  }
}

interface Ruled extends ResolvableMount {
  readonly scopes: readonly string[]
}

function judge(uri: string, who: Principal, resolvedUri: ResolvedUri<Ruled> | undefined): AccessReport {
  const about = { uri, roles: who.roles }
  if (resolvedUri === undefined) return { ...about, allowed: false, reason: 'no-mount' }
  const { mount, path, below } = resolvedUri
  const at = { ...about, mount: mount.address, path }
  const missingScopes = mount.scopes.filter((scope) => who.scopes?.includes(scope) === false)
  if (missingScopes.length > 0) return { ...at, allowed: false, reason: 'missing-scope', missingScopes }
  const within = { ...at, ...belowOf(path, below(who)) }
  if (mount.rules === undefined) return { ...within, allowed: true, reason: 'no-rules' }
  return { ...within, ...decided(compileVerdict(mount.rules)(who, path), mount.rules) }
}

function belowOf(path: string, below: 'all' | 'some' | 'none'): Pick<AccessReport, 'below'> {
  return path === '' || path.endsWith('/') ? { below } : {}
}

function decided(
  { allowed, rule: index }: Verdict,
  rules: readonly AccessRule[],
): Pick<AccessReport, 'allowed' | 'reason' | 'rule'> {
  const rule = index === undefined ? undefined : rules[index]
  if (index === undefined || rule === undefined) return { allowed: false, reason: 'no-rule-allows' }
  return { allowed, reason: allowed ? 'allowed-by-rule' : 'denied-by-rule', rule: { index, rule } }
}

function explain({ uri, roles, allowed, mount, path, below, leftOut, ...why }: AccessReport): readonly string[] {
  const who =
    roles.length === 0
      ? 'A caller without a role'
      : `A caller with the ${roles.length === 1 ? 'role' : 'roles'} ${roles.join(', ')}`
  if (mount === undefined) return [`${uri} is not in any mount of the configuration, so no access rule decides on it.`]
  const lines = [
    `${who} ${allowed ? 'may' : 'may not'} see ${uri}${leftOut === undefined ? '' : ', as far as the access rules go'}.`,
    `  mount  ${mount}`,
    `  path   ${path || '(the mount itself)'}`,
  ]
  switch (why.reason) {
    case 'no-rules':
      lines.push('  why    the mount has no access rules, so no rule hides it')
      break
    case 'missing-scope':
      lines.push(
        `  why    the mount needs a token with the ${why.missingScopes?.length === 1 ? 'scope' : 'scopes'} ${(why.missingScopes ?? []).join(', ')}`,
      )
      break
    case 'no-rule-allows':
      lines.push('  why    the mount has access rules, and none of them allows it')
      break
    default:
      lines.push(
        `  why    rule ${(why.rule?.index ?? 0) + 1} ${allowed ? 'allows' : 'denies'} it: ${JSON.stringify(why.rule?.rule)}`,
      )
  }
  if (leftOut !== undefined) lines.push(`  source the mount leaves it out: ${leftOut.why}`)
  if (below !== undefined)
    lines.push(
      {
        all: '  below  no access rule hides anything in this directory',
        some: '  below  access in this directory depends on the path; the directory is visible if something in it is',
        none: '  below  the access rules hide everything in this directory',
      }[below],
    )
  return lines
}
