import { invalid } from '../../core/errors.ts'
import type { Params } from '../../core/provider.ts'
import { checkSpan, chooseStep, type Moment, parseStep, parseTime, type Span } from './time.ts'

/** Formats of series besides JSON. */
export const forms = ['csv', 'chart'] as const
export type Form = (typeof forms)[number] | 'json'

/** The parameters of a request for series. */
export interface Wanted {
  readonly form: Form
  readonly when: Span | Moment
  /** Whether the caller requested the step: then every point is returned. */
  readonly exact: boolean
}

/** Number of points fetched of each series with an automatic step; the shown points are selected from them. */
const fetched = 10_000
const hour = 3600

/**
 * @param interval Interval of the samples, in seconds.
 * @param now In seconds since 1970.
 * @param spans Whether a request without `start` is for a span instead of one moment.
 * @throws ResourceError `invalid` (reasons `as`, `time`, `step`).
 */
export function wantedIn(
  params: Params,
  { interval, now, spans }: { readonly interval: number; readonly now: number; readonly spans: boolean },
): Wanted {
  const form = formIn(params.get('as'))
  const [from, to, by] = [params.get('start'), params.get('end'), params.get('step')]
  const end = to === undefined ? now : parseTime('end', to, now)
  // A picture of one moment would be empty.
  if (from === undefined && by === undefined && !spans && form !== 'chart')
    return { form, when: { at: end }, exact: true }
  const start = from === undefined ? Math.max(0, end - hour) : parseTime('start', from, now)
  const step = by === undefined ? chooseStep(end - start, interval, fetched) : parseStep(by)
  return { form, when: checkSpan({ start, end, step }), exact: by !== undefined }
}

function formIn(as: string | undefined): Form {
  if (as === undefined || as === 'json') return 'json'
  const form = forms.find((name) => name === as)
  if (form !== undefined) return form
  throw invalid(
    'Series can be read as JSON, as a table or as a picture: leave "as" out, or write as=csv or as=chart.',
    'as',
  )
}
