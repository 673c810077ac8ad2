import type { rules } from '@secretlint/secretlint-rule-preset-recommend'
import { type Finding, type FindOptions, findOwn, inSource, viewsFor } from './find.ts'
import type { Span } from './spans.ts'

/** Finds the secrets in a text with all detectors, in no order; they may overlap. It is slow, so call it in a worker. */
export async function findSecrets(text: string, options: FindOptions): Promise<readonly Finding[]> {
  const found = [...findOwn(text, options)]
  if (options.without?.includes('lint') === true) return found
  for (const view of viewsFor(text, options))
    for (const span of await findByLint(view.text)) found.push(inSource(view, 'lint', span))
  return found
}

/** Whether any rule of secretlint could find a secret: most texts need not be scanned by each rule. */
const gate =
  /gh[pousr]_|github_pat|xox|xapp-|hooks\.slack|:\/\/|PRIVATE KEY|npm_|_authToken|SG\.|shp[a-z]{2}_|sk-|lin_api|ops_ey|secret|SECRET|Secret/

type Rule = (typeof rules)[number]

let scanners: Promise<readonly Rule[]> | undefined

/**
 * All of its recommended rules for text, except the one by which comments in a text turn other rules off. They are loaded for the
 * first text that passes the gate: most commands scan none.
 */
function loadScanners(): Promise<readonly Rule[]> {
  scanners ??= import('@secretlint/secretlint-rule-preset-recommend').then(({ rules }) =>
    rules.filter(
      ({ meta }) =>
        !meta.id.endsWith('filter-comments') && meta.supportedContentTypes.some((type) => type !== 'binary'),
    ),
  )
  return scanners
}

type RuleContext = Parameters<Rule['create']>[0]
type Source = Parameters<NonNullable<ReturnType<Rule['create']>['file']>>[0]
type Report = Parameters<RuleContext['report']>[0]

/**
 * Returns the findings of the rules of secretlint. The rules run without its core, which keeps all its performance measurements
 * and scans all of them for each new one: a long-lived process would stall.
 */
async function findByLint(text: string): Promise<readonly Span[]> {
  if (!gate.test(text)) return []
  const found: Span[] = []
  for (const filePath of ['text.txt', '.npmrc', 'package.json']) {
    if (filePath === '.npmrc' && !text.includes('_authToken')) continue
    if (filePath === 'package.json' && !text.includes('x-oauth-basic')) continue
    for (const { range, message } of await reportsOn(sourceOf(text, filePath))) {
      const values = Object.values((message.data ?? {}) as Readonly<Record<string, unknown>>)
        .filter((value) => typeof value === 'string')
        .flatMap((value) => occurrence(text, value, range[0]))
      // Some ranges begin at the name of a value and end within the value, so search the value itself.
      const spans = values.length > 0 ? values : [{ start: range[0], end: range[1] }]
      found.push(...spans.map((span) => withoutHost(text, span)))
    }
  }
  return found
}

async function reportsOn(source: Source): Promise<readonly Report[]> {
  const reports: Report[] = []
  const context: RuleContext = {
    sharedOptions: {},
    createTranslator: () => (messageId, data) => ({ message: '', messageId: String(messageId), data }),
    report: (report) => void reports.push(report),
    ignore: () => {},
  }
  for (const rule of await loadScanners()) await rule.create(context, {}).file?.(source)
  return reports
}

/** The path has no physical file, so no rule opens it: one of them reads key stores from the disk. */
function sourceOf(content: string, filePath: string): Source {
  const unused = () => {
    throw new Error('no rule asks for lines and columns')
  }
  return {
    ...{ content, filePath, ext: '.txt', contentType: 'text', hasBOM: false, physicalFilePath: undefined },
    getFilePath: () => filePath,
    getPhysicalFilePath: () => undefined,
    ...{ locationToRange: unused, rangeToLocation: unused, positionToIndex: unused, indexToPosition: unused },
  }
}

/** The secret part of a URL: the user information, or the part after the host. */
function withoutHost(text: string, { start, end }: Span): Span {
  const [head = '', scheme = '', userinfo, host = ''] =
    /^([a-z][\w+.-]*:\/\/)(?:([^\s]*)@)?([^\s/?#@]*)/i.exec(text.slice(start, end)) ?? []
  if (userinfo !== undefined) return { start: start + scheme.length, end: start + scheme.length + userinfo.length }
  return host === '' || head.length === end - start ? { start, end } : { start: start + head.length, end }
}

/** Returns the span of the next occurrence of a value from an index on; empty when there is none. */
function occurrence(text: string, value: string, from: number): readonly Span[] {
  const start = value.length < 3 ? -1 : text.indexOf(value, from)
  return start === -1 ? [] : [{ start, end: start + value.length }]
}
