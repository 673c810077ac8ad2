import { defined } from '../../core/kit/defined.ts'
import { noAnswer } from './faults.ts'
import type { PageName } from './source.ts'

/**
 * The pages of Prometheus: alerts, rules and targets, without facts that change with every read, and without facts that may contain a secret
 * (the scraped addresses with their parameters).
 */

/** Maximum number of items per page. */
const most = 1000
/** Maximum length of a text, in characters. */
const maxText = 2000

type Told = Readonly<Record<string, unknown>>

export function pageOf(name: PageName, data: unknown): Told {
  switch (name) {
    case 'alerts':
      return alertsIn(data)
    case 'rules':
      return rulesIn(data)
    case 'targets':
      return targetsIn(data)
  }
}

function alertsIn(data: unknown): Told {
  const all = listIn(data, 'alerts').map(alertOf)
  const byState = countBy(all, ({ state }) => state ?? 'unknown')
  const words = all.length === 0 ? 'No alert is pending or firing.' : `${count(all.length, 'alert')}: ${byState}.`
  return { summary: words, ...page('alerts', all) }
}

function alertOf(alert: Told) {
  const { alertname, ...labels } = textsOf(alert.labels)
  return {
    ...defined({ name: alertname }),
    ...told(alert, ['state', 'activeAt', 'value']),
    labels,
    annotations: textsOf(alert.annotations),
  }
}

function rulesIn(data: unknown): Told {
  const groups = listIn(data, 'groups').map((group) => ({
    ...told(group, ['name', 'file', 'interval']),
    file: baseOf(group.file),
    rules: listIn(group, 'rules').slice(0, most).map(ruleOf),
  }))
  const rules = groups.flatMap((group) => group.rules)
  const broken = rules.filter(({ health }) => health === 'err').length
  const words = [
    `${count(rules.length, 'rule')} in ${count(groups.length, 'group')}`,
    ...(broken === 0 ? [] : [`${broken} cannot be evaluated`]),
  ]
  return { summary: `${words.join('; ')}.`, ...page('groups', groups) }
}

function ruleOf(rule: Told) {
  return {
    ...told(rule, ['name', 'type', 'state', 'query', 'duration', 'health', 'lastError']),
    labels: textsOf(rule.labels),
    ...(rule.type === 'alerting' ? { annotations: textsOf(rule.annotations) } : {}),
  }
}

/** Returns the base name: the folder belongs to another machine and is of no use here. */
function baseOf(file: unknown): string {
  return typeof file === 'string' ? (file.split(/[\\/]/).at(-1) ?? '').slice(0, maxText).toWellFormed() : ''
}

function targetsIn(data: unknown): Told {
  const targets = listIn(data, 'activeTargets').map((target) => {
    const { job, instance, ...labels } = textsOf(target.labels)
    return {
      ...defined({ job, instance }),
      ...told(target, ['health', 'lastError', 'scrapeInterval']),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    }
  })
  const down = targets.filter(({ health }) => health === 'down')
  const names = down
    .slice(0, 10)
    .map(({ job, instance }) => [job, instance].filter((part) => part !== undefined).join(' '))
  const words = [
    `${count(targets.length, 'target')}: ${countBy(targets, ({ health }) => health ?? 'unknown') || 'none'}.`,
    ...(down.length === 0 ? [] : [`Down: ${names.join(', ')}${down.length > 10 ? ' and others' : ''}.`]),
  ]
  return { summary: words.join(' '), ...page('targets', targets) }
}

function page(name: string, items: readonly unknown[]): Told {
  const left = items.length - most
  return { ...(left > 0 ? { omitted: { [name]: left, of: items.length } } : {}), [name]: items.slice(0, most) }
}

function listIn(value: unknown, key: string): readonly Told[] {
  const list = isRecord(value) ? value[key] : undefined
  if (!Array.isArray(list)) throw noAnswer()
  return (list as readonly unknown[]).filter(isRecord)
}

function isRecord(value: unknown): value is Told {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Picks the texts and numbers among some members. */
function told<K extends string>(value: Told, keys: readonly K[]): { readonly [key in K]?: string } {
  const members = keys.flatMap((key) => {
    const member = value[key]
    if (member === '' || (typeof member !== 'string' && typeof member !== 'number')) return []
    return [[key, typeof member === 'string' ? withoutUrls(bounded(member)) : member] as const]
  })
  return Object.fromEntries(members) as { readonly [key in K]?: string }
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  if (!isRecord(value)) return {}
  const texts = Object.entries(value).slice(0, 100)
  return Object.fromEntries(texts.map(([name, text]) => [name.toWellFormed(), bounded(String(text))]))
}

function bounded(text: string): string {
  return text.slice(0, maxText).toWellFormed()
}

/** Removes addresses, whose parameters may be secret: the error of a scrape begins with one. */
function withoutUrls(text: string): string {
  return text.replace(/^(?:Get|Post) "[^"]*": /, '').replace(/(https?:\/\/)[^\s"'/?#]*@/g, '$1')
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): string {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return [...counts].map(([key, number]) => `${number} ${key}`).join(', ')
}
