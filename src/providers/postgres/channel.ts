/** Channel that the event trigger notifies. Every role that can connect can notify it too, so a notification only triggers a check. */
export const channel = 'hikidashi'
