//! Turns the state of a configured instance into a component that starts in that state.
//!
//! The work is done by wizer: it adds functions to the component that read its memories and globals, and
//! writes their values into a new component. It rejects components that keep state elsewhere (changing
//! tables, nested components). Those are configured for every call.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use crate::limits;
use crate::state::HostState;

/// A component with added functions that read its state.
pub(crate) struct Readable<'a> {
    wizer: Wizer,
    context: ComponentContext<'a>,
    /// The bytes to compile and run instead of the original.
    pub(crate) component: Vec<u8>,
}

impl<'a> Readable<'a> {
    /// Prepares a component. Returns `None` if no snapshot of it can be taken.
    pub(crate) fn prepare(component: &'a [u8]) -> Option<Self> {
        let mut wizer = Wizer::new();
        wizer.keep_init_func(true);
        let (context, readable) = calmly(|| wizer.instrument_component(component).ok())?;
        Some(Self { wizer, context, component: readable })
    }

    /// Returns a component that starts in the current state of `instance`.
    pub(crate) fn snapshot(&self, store: &mut Store<HostState>, instance: Instance) -> Option<Vec<u8>> {
        store.set_hostcall_fuel(limits::MEMORY.saturating_mul(2));
        let mut reader = Reader { store, instance, has_failed: false };
        let taken = calmly(|| {
            let future = pin!(self.wizer.snapshot_component(&self.context, &mut reader));
            // The future is ready at once: the reader never waits.
            match future.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(taken) => taken.ok(),
                Poll::Pending => None,
            }
        });
        taken.filter(|_| !reader.has_failed)
    }
}

/// Runs a step of wizer and catches its panics.
///
/// Wizer panics on input that it does not know; such a component has no snapshot.
fn calmly<T>(step: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(step)).ok().flatten()
}

/// Calls the functions that wizer added.
struct Reader<'a> {
    store: &'a mut Store<HostState>,
    instance: Instance,
    has_failed: bool,
}

impl Reader<'_> {
    fn call<R, T>(
        &mut self,
        place: &str,
        name: &str,
        use_it: impl FnOnce(&mut Store<HostState>, R) -> T,
    ) -> Option<T>
    where
        R: Lift + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let place = self.instance.get_export_index(&mut *self.store, None, place)?;
        let function = self.instance.get_export_index(&mut *self.store, Some(&place), name)?;
        let function = self.instance.get_typed_func::<(), (R,)>(&mut *self.store, function).ok()?;
        let (value,) = function.call(&mut *self.store, ()).ok()?;
        Some(use_it(self.store, value))
    }

    fn number<R>(&mut self, place: &str, name: &str) -> R
    where
        R: Lift + Default + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let number = self.call(place, name, |_, number: R| number);
        self.has_failed |= number.is_none();
        number.unwrap_or_default()
    }
}

impl ComponentInstanceState for Reader<'_> {
    async fn call_func_ret_list_u8(&mut self, place: &str, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let read = self.call(place, name, |store, bytes: WasmList<u8>| contents(bytes.as_le_slice(&*store)));
        self.has_failed |= read.is_none();
    }

    async fn call_func_ret_s32(&mut self, place: &str, name: &str) -> i32 {
        self.number(place, name)
    }

    async fn call_func_ret_s64(&mut self, place: &str, name: &str) -> i64 {
        self.number(place, name)
    }

    async fn call_func_ret_f32(&mut self, place: &str, name: &str) -> u32 {
        self.number::<f32>(place, name).to_bits()
    }

    async fn call_func_ret_f64(&mut self, place: &str, name: &str) -> u64 {
        self.number::<f64>(place, name).to_bits()
    }
}
