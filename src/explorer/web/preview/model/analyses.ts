import { isObject } from '../../../../core/kit/object.ts'
import { encodePath, encodeSegment } from '../../../../core/uri.ts'

/** An analysis in a list of a results mount (`recent`, `by-tag/…`). */
export interface ListedAnalysis {
  readonly uri: string
  readonly report: string
  readonly title: string
  readonly taskType: string | undefined
  readonly confidence: number | undefined
  readonly thresholdsMet: boolean | undefined
  readonly cost: number | undefined
  /** Names of the models' providers. */
  readonly providers: readonly string[]
  readonly created: number | undefined
  readonly expires: number | undefined
  readonly tags: readonly { readonly name: string; readonly uri: string }[]
}

/** The analyses in a list at a URI, newest first. Undefined when it is another document. */
export function analysesOf(value: unknown, uri: string): readonly ListedAnalysis[] | undefined {
  const [, mount] = /^([^?#]*\/)(?:recent|by-tag\/[^/?#]+)$/.exec(uri) ?? []
  if (mount === undefined || !isObject(value) || !Array.isArray(value.results)) return undefined
  const listed: ListedAnalysis[] = []
  for (const result of value.results) {
    if (!isObject(result) || typeof result.path !== 'string' || !result.path.startsWith('results/')) return undefined
    const at = `${mount}${encodePath(result.path)}`
    listed.push({
      uri: at,
      report: `${at}/report`,
      title: textOf(result.title) ?? String(result.id ?? result.path),
      taskType: textOf(result.taskType),
      confidence: numberOf(result.confidence),
      thresholdsMet: typeof result.thresholdsMet === 'boolean' ? result.thresholdsMet : undefined,
      cost: numberOf(result.totalCost),
      providers: textsIn(result.providers),
      created: timeOf(result.created),
      expires: timeOf(result.expires),
      tags: textsIn(result.tags).map((name) => ({ name, uri: tagUri(mount, name) })),
    })
  }
  return listed
}

/** A tag as a segment of a path (docs/providers/results.md): `~` is `~0`, `/` is `~1`, the dot of `.` and `..` is `~2`. */
function tagUri(mount: string, tag: string): string {
  const name = tag
    .replaceAll('~', '~0')
    .replaceAll('/', '~1')
    .replace(/^\.(?=\.?$)/, '~2')
  return `${mount}by-tag/${encodeSegment(name)}`
}

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined)

/** A time in milliseconds since 1970, from its text (ISO 8601). */
export function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
