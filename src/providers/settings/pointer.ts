import { invalid } from '../../core/errors.ts'

/**
 * The steps of a JSON pointer (RFC 6901).
 *
 * @throws ResourceError `invalid` (reason `pointer`) for a malformed one.
 */
export function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/'))
    throw invalid('A pointer begins with "/": write ?pointer=/db/host, or leave it empty for all of it.', 'pointer')
  if (/~(?![01])/.test(pointer))
    throw invalid('In a pointer, "~" is written as "~0", and "/" within a name as "~1".', 'pointer')
  return pointer.slice(1).split('/').map(unescapeStep)
}

/** One step of a pointer, or its typed beginning: `~1` is `/`, `~0` is `~`. */
export function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

export function escapeStep(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1')
}
