import { lintSource } from '@secretlint/core'
import { rules } from '@secretlint/secretlint-rule-preset-recommend'
import type { Span } from './spans.ts'

/** Whether any rule of secretlint could find something at all: most texts need not be gone through by each of them. */
const gate =
  /gh[pousr]_|github_pat|xox|xapp-|hooks\.slack|:\/\/|PRIVATE KEY|npm_|_authToken|SG\.|shp[a-z]{2}_|sk-|lin_api|ops_ey|secret|SECRET|Secret/

/** All of its recommended rules but the one by which comments in the text turn the others off. */
const config = {
  rules: rules
    .filter((rule) => !rule.meta.id.endsWith('filter-comments'))
    .map((rule) => ({ id: rule.meta.id, rule, options: {} })),
}

/**
 * What the rules of secretlint find in a text. The file is named so that no rule opens it: one of them reads key stores
 * from the disk.
 */
export async function findByLint(text: string): Promise<readonly Span[]> {
  if (!gate.test(text)) return []
  const found: Span[] = []
  for (const filePath of ['text.txt', '.npmrc', 'package.json']) {
    if (filePath === '.npmrc' && !text.includes('_authToken')) continue
    if (filePath === 'package.json' && !text.includes('x-oauth-basic')) continue
    const { messages } = await lintSource({
      source: { filePath, ext: '.txt', content: text, contentType: 'text' },
      options: { config, noPhysicFilePath: true },
    })
    for (const { range, data } of messages) {
      const values = Object.values((data ?? {}) as Readonly<Record<string, unknown>>)
        .filter((value) => typeof value === 'string')
        .flatMap((value) => occurrence(text, value, range[0]))
      // Some ranges begin at the name of a value, and end within it: the value itself is where it is.
      const spans = values.length > 0 ? values : [{ start: range[0], end: range[1] }]
      found.push(...spans.map((span) => withoutHost(text, span)))
    }
  }
  return found
}

/** Of a URL, the part that is secret: the user information, or what follows the host. */
function withoutHost(text: string, { start, end }: Span): Span {
  const [head = '', scheme = '', userinfo, host = ''] =
    /^([a-z][\w+.-]*:\/\/)(?:([^\s]*)@)?([^\s/?#@]*)/i.exec(text.slice(start, end)) ?? []
  if (userinfo !== undefined) return { start: start + scheme.length, end: start + scheme.length + userinfo.length }
  return host === '' || head.length === end - start ? { start, end } : { start: start + head.length, end }
}

/** Where a value is, from a place on: each time that it is there, it is found again. */
function occurrence(text: string, value: string, from: number): readonly Span[] {
  const start = value.length < 3 ? -1 : text.indexOf(value, from)
  return start === -1 ? [] : [{ start, end: start + value.length }]
}
