import { useEffect, useRef } from 'preact/hooks'
import { markChanged, onChange } from '../state/live.ts'
import { place } from '../state/place.ts'

/** Maximum number of resources subscribed to for their marks: the ones that were visible last. */
const most = 300
/** Delay after the last scroll event, in milliseconds. */
const pause = 400

/** Marks what changes among the rows that are to be seen. */
export function useWatched(uris: readonly string[]): void {
  const watched = useRef(new Map<string, () => void>()).current
  const key = uris.join(' ')
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const uri of uris) {
        const end =
          watched.get(uri) ??
          onChange(uri, (missed) => {
            // Missed changes show when the list is loaded again.
            if (!missed && place.value.uri !== uri) markChanged([uri])
          })
        watched.delete(uri)
        watched.set(uri, end)
      }
      for (const [uri, end] of watched) {
        if (watched.size <= most) break
        end()
        watched.delete(uri)
      }
    }, pause)
    return () => clearTimeout(timer)
  }, [key])
  useEffect(
    () => () => {
      for (const end of watched.values()) end()
      watched.clear()
    },
    [],
  )
}
