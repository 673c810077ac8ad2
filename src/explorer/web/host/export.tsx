import { useSignal } from '@preact/signals'
import { assemble } from '../basket/ask.ts'
import { plan, settings } from '../basket/store.ts'
import { t } from '../basket/words.ts'
import { Choice } from '../preview/controls.tsx'
import { copy, reasonOf } from '../state/announce.ts'
import { connected } from '../state/session.ts'
import { type Given, given, givenAs, takesContext } from './given.ts'
import { t as own } from './words.ts'

/** In a host, the context goes into the conversation; copying works too. */
export const Export: typeof import('../basket/export.tsx').Export = () => {
  const told = useSignal('')
  const copyText = async () => {
    told.value = t('working')
    try {
      const { text, tokens } = await assemble(connected(), plan.value, settings.value)
      told.value = (await copy(text)) ? t('copied', { count: tokens }) : t('copyFailed')
    } catch (error) {
      told.value = reasonOf(error)
    }
  }
  return (
    <div class="basket-export">
      {takesContext() ? <Giving /> : <p class="basket-hint">{own('noContext')}</p>}
      <div class="basket-outs">
        <button
          type="button"
          class="button"
          disabled={plan.value.over > 0 || !plan.value.isWhole}
          onClick={() => void copyText()}
        >
          {t('copy')}
        </button>
        <p class="basket-hint" role="status">
          {told.value}
        </p>
      </div>
    </div>
  )
}

function Giving() {
  return (
    <>
      <div class="giving">
        <span class="giving-label">{own('gives')}</span>
        <Choice
          label={own('gives')}
          options={[
            ['links', own('links')],
            ['contents', own('contents')],
          ]}
          value={givenAs.value}
          onChoose={(as) => {
            givenAs.value = as
          }}
        />
      </div>
      <p class="basket-hint">{own(givenAs.value === 'links' ? 'linksHint' : 'contentsHint')}</p>
      <p class="giving-state" role="status">
        {wordsOf(given.value)}
      </p>
    </>
  )
}

function wordsOf(now: Given): string {
  if (now.state === 'links') return own('hasLinks', { count: now.count })
  if (now.state === 'contents') return own('hasContents', { tokens: now.tokens })
  if (now.state === 'failed') return own('failed', { reason: now.reason })
  return own(now.state)
}
