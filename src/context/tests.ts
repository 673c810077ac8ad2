import { compileGlobs } from '../core/glob.ts'
import { baseName } from '../core/path.ts'
import { decodeUriPath } from './reader.ts'
import type { Candidate, Factor } from './types.ts'

/** Globs of tests, as the tools of most languages name them. */
export const testFileGlobs = [
  '**/{test,tests,__tests__,spec,specs,e2e,testdata}/**',
  '**/*.{test,spec}.*',
  '**/*_{test,spec}.*',
  '**/test_*.py',
  '**/*{Test,Tests}.{java,kt,cs,php,swift}',
]
const isTestPath = compileGlobs(testFileGlobs)

/** The score of a test is at most this share of that of its source. */
const share = 0.5

/**
 * Ranks a test below the file that it tests, which is found by its name: `cursor.ts` for `cursor.test.ts`, `command.go` for
 * `command_test.go`, `session.py` for `test_session.py`. It does not apply if the query names tests.
 */
export function rankTestsLower(candidates: readonly Candidate[], terms: ReadonlySet<string>): readonly Candidate[] {
  if (terms.has('test') || terms.has('spec')) return candidates
  const sources = new Map<string, Candidate>()
  for (const candidate of candidates) {
    const name = subjectOf(candidate)
    const previous = sources.get(name)
    if (!isTest(candidate) && candidate.explanation.score > (previous?.explanation.score ?? 0))
      sources.set(name, candidate)
  }
  return candidates.map((candidate) => {
    const source = isTest(candidate) ? sources.get(subjectOf(candidate)) : undefined
    const { score, factors } = candidate.explanation
    const most = share * (source?.explanation.score ?? 0)
    if (source === undefined || score <= most) return candidate
    const factor: Factor = { name: 'test', value: most / score, because: `a test of ${source.resource.uri}` }
    return { ...candidate, explanation: { score: most, factors: [...factors, factor] } }
  })
}

function isTest({ resource }: Candidate): boolean {
  // Check by a fast regular expression first: globs take long, and there may be thousands of candidates.
  return (
    /test|spec|e2e/i.test(resource.uri) && isTestPath(decodeUriPath(resource.uri).replace(/^[^:]*:\/\/[^/]*\//, ''))
  )
}

/** The name of a file without its ending and the marks of a test. */
function subjectOf({ resource }: Candidate): string {
  const bare = baseName(decodeUriPath(resource.uri)).replace(/(?<=.)\.[^.]*$/, '')
  return bare.replace(/^test_|[._-](?:tests?|spec)$|(?<=[a-z\d])Tests?$/g, '')
}
