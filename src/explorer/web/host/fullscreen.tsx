import { Shape } from '../shell/icons.tsx'
import { ask, hostContext, isObject } from './bridge.ts'
import { t } from './words.ts'

/** Asks the host for the whole window or for the place in the conversation, if it has both. */
export function FullscreenButton() {
  const { availableDisplayModes, displayMode } = hostContext.value
  const mode = displayMode === 'fullscreen' ? 'inline' : 'fullscreen'
  if (!Array.isArray(availableDisplayModes) || !availableDisplayModes.includes(mode)) return null
  const label = t(mode)
  const change = async () => {
    const answer = await ask('ui/request-display-mode', { mode })
    if (isObject(answer) && typeof answer.mode === 'string')
      hostContext.value = { ...hostContext.value, displayMode: answer.mode }
  }
  return (
    <button
      type="button"
      class="button button-quiet"
      aria-label={label}
      title={label}
      onClick={() => void change().catch(() => {})}
    >
      <Shape name={mode === 'fullscreen' ? 'expand' : 'close'} />
    </button>
  )
}
