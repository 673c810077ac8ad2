import { defined, isObject } from '../../core/kit/object.ts'
import { malformedAnswerError } from './request.ts'
import type { PageName } from './source.ts'

/** Maximum number of items of a page, and of rules of a group. */
const most = 1000
/** Maximum length of a text, in characters. */
const maxText = 2000

type MetricFacts = Readonly<Record<string, unknown>>

/**
 * Makes the page `alerts`, `rules` or `targets` of an answer of Prometheus. The scraped URLs are left out, because their parameters may be
 * secret.
 */
export function prometheusPage(name: PageName, data: unknown): MetricFacts {
  switch (name) {
    case 'alerts':
      return alertsIn(data)
    case 'rules':
      return rulesIn(data)
    case 'targets':
      return targetsIn(data)
  }
}

function alertsIn(data: unknown): MetricFacts {
  const all = listIn(data, 'alerts').map(alertOf)
  const byState = countBy(all, ({ state }) => state ?? 'unknown')
  const words = all.length === 0 ? 'No alert is pending or firing.' : `${count(all.length, 'alert')}: ${byState}.`
  return { summary: words, ...page('alerts', all) }
}

function alertOf(alert: MetricFacts) {
  const { alertname, ...labels } = stringifyValues(alert.labels)
  return {
    ...defined({ name: alertname }),
    ...told(alert, ['state', 'activeAt', 'value']),
    labels,
    annotations: stringifyValues(alert.annotations),
  }
}

function rulesIn(data: unknown): MetricFacts {
  const all = listIn(data, 'groups')
  const rules = all.flatMap((group) => listIn(group, 'rules'))
  const broken = rules.filter(({ health }) => health === 'err').length
  const groups = all.map((group) => ({
    ...told(group, ['name', 'file', 'interval']),
    file: baseOf(group.file),
    ...page('rules', listIn(group, 'rules').map(ruleOf)),
  }))
  const words = [
    `${count(rules.length, 'rule')} in ${count(groups.length, 'group')}`,
    ...(broken === 0 ? [] : [`${broken} cannot be evaluated`]),
  ]
  return { summary: `${words.join('; ')}.`, ...page('groups', groups) }
}

function ruleOf(rule: MetricFacts) {
  return {
    ...told(rule, ['name', 'type', 'state', 'query', 'duration', 'health', 'lastError']),
    labels: stringifyValues(rule.labels),
    ...(rule.type === 'alerting' ? { annotations: stringifyValues(rule.annotations) } : {}),
  }
}

function baseOf(file: unknown): string {
  return typeof file === 'string' ? (file.split(/[\\/]/).at(-1) ?? '').slice(0, maxText).toWellFormed() : ''
}

function targetsIn(data: unknown): MetricFacts {
  const targets = listIn(data, 'activeTargets').map((target) => {
    const { job, instance, ...labels } = stringifyValues(target.labels)
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

function page(name: string, items: readonly unknown[]): MetricFacts {
  const omittedCount = items.length - most
  return {
    ...(omittedCount > 0 ? { omitted: { [name]: omittedCount, of: items.length } } : {}),
    [name]: items.slice(0, most),
  }
}

function listIn(value: unknown, key: string): readonly MetricFacts[] {
  const list = isObject(value) ? value[key] : undefined
  if (!Array.isArray(list)) throw malformedAnswerError()
  return (list as readonly unknown[]).filter(isObject)
}

/** Returns the members with these keys that are numbers or non-empty texts. Credentials in HTTP URLs are removed. */
function told<K extends string>(value: MetricFacts, keys: readonly K[]): { readonly [key in K]?: string } {
  const members = keys.flatMap((key) => {
    const member = value[key]
    if (member === '' || (typeof member !== 'string' && typeof member !== 'number')) return []
    return [[key, typeof member === 'string' ? withoutUrls(truncateText(member)) : member] as const]
  })
  return Object.fromEntries(members) as { readonly [key in K]?: string }
}

function stringifyValues(value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) return {}
  const texts = Object.entries(value).slice(0, 100)
  return Object.fromEntries(texts.map(([name, text]) => [name.toWellFormed(), truncateText(String(text))]))
}

function truncateText(text: string): string {
  return text.slice(0, maxText).toWellFormed()
}

/** Removes the scraped URL, whose parameters may be secret, from the start of an error, and the credentials from other URLs. */
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

const [quote, backslash] = [0x22, 0x5c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Nesting level of the elements: objects in an array in an object in an object. */
const level = 3

/**
 * Creates a streaming reader that passes each element of `data.result` in an answer of the Prometheus API to a callback. If the answer is
 * malformed JSON, so is an element or the rest.
 */
export function createElementReader(take: (json: Uint8Array) => void) {
  const brackets: number[] = []
  let depth = 0
  let inString = false
  let escaped = false
  let element: Uint8Array[] | undefined
  const rest: Uint8Array[] = []

  const isElementStart = () =>
    depth === level && brackets[0] === openBrace && brackets[1] === openBrace && brackets[2] === openBracket

  return {
    push: (chunk: Uint8Array): void => {
      let from = 0
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at]
        if (inString) {
          if (escaped) escaped = false
          else if (byte === backslash) escaped = true
          else if (byte === quote) inString = false
        } else if (byte === quote) inString = true
        else if (byte === openBrace || byte === openBracket) {
          if (byte === openBrace && isElementStart()) {
            rest.push(chunk.subarray(from, at))
            element = []
            from = at
          }
          if (depth < level) brackets[depth] = byte
          depth++
        } else if (byte === closeBrace || byte === closeBracket) {
          depth--
          if (element === undefined || depth !== level) continue
          take(Buffer.concat([...element, chunk.subarray(from, at + 1)]))
          element = undefined
          rest.push(zero)
          from = at + 1
        }
      }
      const restBytes = chunk.subarray(from)
      if (element === undefined) rest.push(restBytes)
      else element.push(restBytes)
    },
    /** Returns the JSON around the elements, with a `0` in place of each. */
    end: (): string => Buffer.concat(element === undefined ? rest : [...rest, ...element]).toString('utf8'),
  }
}

const zero = Buffer.from('0')
