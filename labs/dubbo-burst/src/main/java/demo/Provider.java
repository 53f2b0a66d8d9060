package demo;

import com.alibaba.dubbo.config.ApplicationConfig;
import com.alibaba.dubbo.config.ProtocolConfig;
import com.alibaba.dubbo.config.RegistryConfig;
import com.alibaba.dubbo.config.ServiceConfig;

/** Serves {@link HelloService} by the protocol dubbo, without a registry. Prints "ready" once it listens. */
public final class Provider {
    private Provider() {}

    public static void main(String[] arguments) throws Exception {
        Settings settings = new Settings(arguments[0]);
        ProtocolConfig protocol = new ProtocolConfig("dubbo", settings.number("port"));
        protocol.setHost(settings.text("host"));
        protocol.setDispatcher(settings.text("dispatcher"));
        protocol.setThreadpool("fixed");
        protocol.setThreads(settings.number("threads"));
        protocol.setIothreads(settings.number("iothreads"));
        protocol.setPayload(settings.number("payload"));
        ServiceConfig<HelloService> service = new ServiceConfig<>();
        service.setApplication(new ApplicationConfig("hello-provider"));
        service.setRegistry(new RegistryConfig(RegistryConfig.NO_AVAILABLE));
        service.setProtocol(protocol);
        service.setInterface(HelloService.class);
        service.setRef(new HelloServiceImpl(settings.number("longest_ms")));
        service.export();
        System.out.println("ready");
        Thread.currentThread().join();
    }
}
