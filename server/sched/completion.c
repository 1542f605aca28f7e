/* Many pushers, one drainer. */
#include "server/sched/completion.h"

void ifd_completions_init(struct ifd_completions *queue, void (*wake)(void *arg), void *wake_arg)
{
    atomic_init(&queue->head, NULL);
    queue->wake = wake;
    queue->wake_arg = wake_arg;
}

void ifd_completions_push(struct ifd_completions *queue, struct ifd_completion *item)
{
    struct ifd_completion *head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    do {
        item->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&queue->head, &head, item, memory_order_release,
                                                    memory_order_relaxed));
    if (!head) {
        queue->wake(queue->wake_arg);
    }
}

void ifd_completions_drain(struct ifd_completions *queue)
{
    struct ifd_completion *newest =
        atomic_exchange_explicit(&queue->head, NULL, memory_order_acquire);
    struct ifd_completion *oldest = NULL;
    while (newest) {
        struct ifd_completion *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct ifd_completion *next = oldest->next; /* read first: fn may free the item */
        oldest->fn(oldest);
        oldest = next;
    }
}
