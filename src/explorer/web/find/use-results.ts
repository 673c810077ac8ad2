import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type Growth, growthOf } from '../home/survey.ts'
import { healed } from '../state/healing.ts'
import { place } from '../state/place.ts'
import { connected } from '../state/session.ts'
import { places, templates } from '../state/templates.ts'
import { find, queryOf, type Results } from './finder.ts'

/** How long the reader pauses before contents are searched, in milliseconds. */
const pauseMs = 250
/** How often a search is asked again while its index grows, in milliseconds. */
const growingMs = 1500

/** Searches the contents for what is in the place, once the reader pauses. */
export function useResults() {
  const results = useSignal<Results | undefined>(undefined)
  const isBusy = useSignal(false)
  const running = useRef<AbortController | undefined>(undefined)
  const key = useComputed(() => JSON.stringify(queryOf(place.value)))
  const { state } = templates.value
  const growth = useSignal<Growth | undefined>(undefined)
  const isLonger = useRef(false)
  const run = async (before?: Results) => {
    running.current?.abort()
    isLonger.current = before !== undefined
    const query = queryOf(place.value)
    if (query === undefined || places.value.length === 0) {
      results.value = undefined
      isBusy.value = false
      return
    }
    const controller = new AbortController()
    running.current = controller
    isBusy.value = true
    try {
      const found = await find(connected().view, places.value, query, before, controller.signal)
      if (!controller.signal.aborted) results.value = found
    } catch {
      // Another search took its place.
    } finally {
      if (running.current === controller) isBusy.value = false
    }
  }
  useEffect(() => {
    if (state !== 'loaded') return
    const timer = setTimeout(() => void run(), results.value === undefined ? 0 : pauseMs)
    return () => clearTimeout(timer)
  }, [key.value, state])
  /** Searches again while the index grows, and once more when it is done. Results that the reader has extended stay as they are. */
  const follow = async (found: Results, signal: AbortSignal) => {
    const query = queryOf(place.value)
    const now = await growthOf(connected().view, places.value, signal)
    if (signal.aborted || query === undefined) return
    const isDone = now === undefined && growth.value === undefined
    growth.value = now
    const again = await find(connected().view, places.value, query, undefined, signal)
    const isSame =
      JSON.stringify(again.hits) === JSON.stringify(found.hits) && again.notes.join() === found.notes.join()
    // Something else may be looked for by now.
    const isAsked = JSON.stringify(queryOf(place.value)) === JSON.stringify(query)
    if (!signal.aborted && isAsked && !(isDone && isSame)) results.value = again
  }
  useEffect(() => {
    const found = results.value
    if (found === undefined || found.notes.length === 0 || isLonger.current) {
      growth.value = undefined
      return
    }
    const controller = new AbortController()
    const begin = () => void follow(found, controller.signal).catch(() => {})
    // How far the index is, is told at once.
    const timer = setTimeout(begin, growth.value === undefined ? 0 : growingMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [results.value])
  useEffect(() => {
    if (healed.value > 0 && (results.value?.failed.length ?? 0) > 0) void run()
  }, [healed.value])
  useEffect(() => () => running.current?.abort(), [])
  return { results, isBusy, growth, run }
}
