import { RE2JS } from 're2js'
import { type LineMatch, maxMatches } from './lines.ts'

/** Compiles a regular expression in the syntax of RE2, as the server does. Case makes no difference. `fault`: why the pattern is invalid. */
export function compileFinder(pattern: string): {
  readonly find?: (lines: readonly string[]) => readonly LineMatch[]
  readonly fault?: string
} {
  try {
    const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE)
    return { find: (lines) => matchesOf(compiled, lines) }
  } catch (error) {
    return { fault: error instanceof Error ? error.message.replace('error parsing regexp: ', '') : String(error) }
  }
}

function matchesOf(compiled: RE2JS, lines: readonly string[]): readonly LineMatch[] {
  const matches: LineMatch[] = []
  for (const [line, text] of lines.entries()) {
    if (!compiled.test(text)) continue
    const matcher = compiled.matcher(text)
    while (matcher.find()) {
      if (matcher.end() > matcher.start()) matches.push({ line, start: matcher.start(), end: matcher.end() })
      if (matches.length === maxMatches) return matches
    }
  }
  return matches
}
