import { useEffect } from 'preact/hooks'
import { defined } from '../../../core/kit/defined.ts'
import { neighbours } from '../state/known.ts'
import { place } from '../state/place.ts'

/** Maximum number of rows searched for the next resource. */
const most = 5000

/**
 * Tells the preview what is before and behind the resource that is shown.
 *
 * @param near Where the resource is, most likely.
 * @param uriAt What can be read in a row. `undefined`: a directory, a note.
 */
export function useNeighbours(
  identity: unknown,
  near: number,
  uriAt: (index: number) => string | undefined,
  count: number,
): void {
  const { uri } = place.value
  useEffect(() => {
    if (uri === undefined) return
    const index = uriAt(near) === uri ? near : indexOf(uri, uriAt, count)
    if (index === -1) return
    const previous = search(index, -1, uriAt, count)
    const next = search(index, 1, uriAt, count)
    neighbours.value = {
      ...defined({ previous, next }),
    }
  }, [identity, near, uri])
}

function indexOf(uri: string, uriAt: (index: number) => string | undefined, count: number): number {
  for (let index = 0; index < count; index++) if (uriAt(index) === uri) return index
  return -1
}

function search(
  from: number,
  step: 1 | -1,
  uriAt: (index: number) => string | undefined,
  count: number,
): string | undefined {
  for (let done = 0, index = from + step; done < most && index >= 0 && index < count; done++, index += step) {
    const uri = uriAt(index)
    if (uri !== undefined) return uri
  }
  return undefined
}
